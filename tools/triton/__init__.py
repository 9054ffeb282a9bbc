"""Installs a real Triton Inference Server for the embedded AWS: `make triton`."""
