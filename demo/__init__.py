"""A fictional user and the scripted walk-through."""
