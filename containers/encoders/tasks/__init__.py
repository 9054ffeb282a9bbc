"""The tasks of the family: one module for each, from a request's body to its answer."""
