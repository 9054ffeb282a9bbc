"""Predicts latency and cost of a model on an instance type, from measurements on other models.

`network` says what a token reads and computes. `latency` turns it into seconds by a roofline whose
constants are fitted (`facts/sizing.json`, `benchmarks/sizing`). `queueing` adds the wait of
requests, `ranking` compares instance types. `measured` has a kept measurement of one's own model,
which corrects predictions, and `performance` what one instance of a plan answers. Nothing here
reads a file but facts.
"""
