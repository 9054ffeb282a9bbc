"""What torch-neuron hands its graphs to neuron-cc with; here it is only imported."""
