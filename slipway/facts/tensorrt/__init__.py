"""What is known of the TensorRT releases."""
