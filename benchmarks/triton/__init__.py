"""T5 spelling correction on a real Triton, on the CPU, beside other ways to serve the same model.

Imports go one way: `design` defines the measurements and the goals, `queries` the requests,
`servers` starts the servers. `session` compares the answers and carries out the design, `summary`
computes, `report` writes. `generate_model` and `serving_core` run in the servers.
"""
