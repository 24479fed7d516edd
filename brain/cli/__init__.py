"""The brain command."""
