"""What the product does: module-level functions that take a unit of work and never commit."""
