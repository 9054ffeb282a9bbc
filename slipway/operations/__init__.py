"""Reads a live account and answers questions about it; never changes anything."""
