"""What `make verify-gpu` and `make verify-neuron` share: the runner of steps, and the programs."""
