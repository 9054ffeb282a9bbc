"""The TensorRT container's serving path on its CPU back end, against the published layout.

One direction: `design` says what is measured and what is promised, `models` makes the model
directories, `workloads` the requests, `servers` starts what is measured, `calibration` finds the
published layout's best use of the cores, `overhead` measures the server alone, `session` goes
through the design, `summary` computes, `report` writes.
"""
