"""The cost of reading, checking and planning model configs: time and memory of fresh processes.

Imports go one way: `design` defines the measurements and the goals, `configs` makes the project,
`probe` runs in each fresh process. `session` carries out the design, `summary` computes, `report`
writes.
"""
