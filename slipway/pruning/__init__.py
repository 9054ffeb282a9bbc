"""Finds what nothing refers to in an account, and deletes it: `slipway prune`."""
