"""The function around an endpoint's update."""
