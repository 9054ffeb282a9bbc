"""The Neuron container's serving path on its CPU back end, against a naive TorchScript server.

One direction: `design` says what is measured and what is promised, `models` makes the model
directories, `workloads` the requests, `servers` starts what is measured, `session` compares the
answers and goes through the design, `summary` computes, `report` writes.
"""
