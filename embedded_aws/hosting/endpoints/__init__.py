"""The operations on endpoints."""
