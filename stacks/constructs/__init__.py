"""The constructs of a stack: one concern of an endpoint each."""
