"""The Neuron container's serving path on its CPU back end, against a naive TorchScript server.

Imports go one way: `design` defines the measurements and the goals, `models` makes the model
directories, `workloads` the requests, `servers` starts the servers. `session` compares the answers
and carries out the design, `summary` computes, `report` writes.
"""
