"""Makes a config of an endpoint that Slipway's Neuron container serves."""
