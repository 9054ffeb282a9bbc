"""The speed of LMI endpoints: DJL Serving beside Slipway's core, and a prefix beside a tar.gz.

`servers` and `serving` carry out the serving part, `transfers` and `weights` the weights part.
"""
