"""Makes a config of an endpoint that Slipway's Triton container serves."""
