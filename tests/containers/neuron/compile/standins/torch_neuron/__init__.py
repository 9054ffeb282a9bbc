"""torch-neuron, as far as compiling and serving call it; see `README.md`."""

import os

import neuron_over_torch
import torch

neuron_over_torch.add_operator("forward_1")

# https://awsdocs-neuron.readthedocs-hosted.com/en/latest/compiler/neuron-cc/command-line-reference.html
OPTIONS = {
    "--neuroncore-pipeline-cores": None,
    "--fp32-cast": ("all", "matmult", "matmult-fp16", "matmult-bf16", "all-fp16"),
}


def trace(model, example_inputs, *, compiler_args=None):
    import tensorflow  # noqa: F401

    arguments = compiler_args or []
    options = neuron_over_torch.parsed(arguments, OPTIONS)
    neuron_over_torch.record("torch_neuron", example_inputs, arguments)
    if os.environ.get("NEURON_STANDIN_COMPILES") == "nothing":
        return torch.jit.trace(model, example_inputs, check_trace=False)
    cores = int(options.get("--neuroncore-pipeline-cores", "1"))
    return neuron_over_torch.graph(model, example_inputs, "forward_1", cores)
