"""What an endpoint tells about itself: metrics, and captured requests."""
