"""Measurements that the documents quote: the programs that make them, and their results."""
