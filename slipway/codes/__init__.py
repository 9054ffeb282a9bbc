"""Codes of problems and their explanations."""
