"""Builds the DJL Serving that the embedded AWS and the tests run: `make djl-serving`."""
