"""The speed of LMI endpoints.

DJL Serving is compared with Slipway's serving core, and an S3 prefix with a tar.gz.

Imports go one way. `design` defines the measurements. For the serving part, `djl` finds the server
and writes its packages, `servers` starts the servers, `prompts` has the requests, and `serving`
carries it out. For the weights part, `checkpoint` makes the weights, `object_store` serves them,
`transfers` fetches them, and `weights` carries it out. `summary` computes, `report` writes.
"""
