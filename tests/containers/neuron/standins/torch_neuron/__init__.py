"""torch-neuron: adds the operator of its graphs, and nothing else that serving uses."""

import neuron_runtime

neuron_runtime.RUNTIMES["neuron::forward_1"] = neuron_runtime.Runtime()
