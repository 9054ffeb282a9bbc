"""A DJL Serving script over the same graph that Slipway's container computes."""
