"""Makes a config of an endpoint that Slipway's TensorRT container serves."""
