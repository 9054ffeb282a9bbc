"""The speed of LMI endpoints: DJL Serving beside Slipway's core, and a prefix beside a tar.gz.

For the serving part, `djl` finds the server and writes its packages, `servers` starts the servers,
and `serving` carries it out. For the weights part, `checkpoint` makes the weights, versitygw
serves them, `transfers` fetches them, and `weights` carries it out.
"""
