"""Moves model bytes: packages artifacts, uploads them with s5cmd, writes the lock."""
