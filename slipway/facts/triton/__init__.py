"""Triton: its releases, the fields of config.pbtxt, and the backends in AWS's image."""
