"""What a user's commands cost in wall time as the number of model configs grows.

One direction: `design` says which commands are timed how often and in which order, `workspace`
makes the projects and the account they run against, `execution` times one command, `session` goes
through the design, `summary` computes, `report` writes. Only `workspace` and `execution` start
processes.
"""
