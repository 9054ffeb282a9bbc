"""The TensorRT container's serving path on its CPU back end, against the published layout.

Imports go one way: `design` defines the measurements and the goals, `models` makes the model
directories, `workloads` the requests, `servers` starts the servers. `calibration` finds the
published layout's best use of the cores, and `overhead` measures the server alone. `session`
carries out the design, `summary` computes, `report` writes.
"""
