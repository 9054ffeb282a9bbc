"""Measurements of Slipway, each a package with a command line of its own.

The packages share these modules. `program`, `machine` and `report` begin and end a run. `trials`
orders the measurements, `estimates` and `summary` compute. `execution` and `processes` start
programs. `load` drives a load, `driver` measures the load driver alone, with `idle_server`.
`models` and `servers` make and start the subject of a comparison, and `comparison` carries one out
beside `baselines`.
"""
