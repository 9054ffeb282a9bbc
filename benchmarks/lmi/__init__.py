"""What LMI endpoints take: DJL Serving against our serving core, a prefix against a tar.gz.

One direction: `design` says what is measured; `djl` finds the server and writes its packages,
`servers` starts what is compared, `prompts` has the requests, `serving` goes through that part.
`checkpoint` makes the weights, `object_store` serves them, `transfers` fetches them, `weights` goes
through that part. `summary` computes, `report` writes.
"""
