"""What is known of the Triton releases."""
