"""Resource types: one handler each, found through the registry."""
