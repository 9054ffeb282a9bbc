"""One request to an endpoint, and its answer: `slipway invoke`."""
