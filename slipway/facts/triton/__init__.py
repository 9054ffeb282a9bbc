"""What is known of Triton: its releases, the fields of config.pbtxt, the backends in AWS's image."""
