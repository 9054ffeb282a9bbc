"""The wall time of a user's commands as the number of model configs grows.

Imports go one way: `design` defines the commands, their trials and their order, `workspace` makes
the projects and the account they run against, `execution` times one command. `session` carries out
the design, `summary` computes, `report` writes. Only `workspace` and `execution` start processes.
"""
