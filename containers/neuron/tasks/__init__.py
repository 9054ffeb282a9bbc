"""What the family can be asked: one module for each task, from a body to its answer."""
