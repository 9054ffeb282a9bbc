"""What is known of the Neuron SDK and its drivers."""
