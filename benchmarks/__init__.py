"""Measurements that the documents quote: how they are made, and their results."""
