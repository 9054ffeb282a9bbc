"""The Neuron container's serving path on its CPU back end, against a naive TorchScript server."""
