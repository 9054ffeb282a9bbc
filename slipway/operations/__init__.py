"""Looks into a live account and answers; never changes anything."""
