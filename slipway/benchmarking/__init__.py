"""Measures servers: the load driver, and a server that does nothing to measure the driver with."""
