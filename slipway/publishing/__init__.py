"""Moves model bytes: packages artifacts, uploads them, writes the lock."""
