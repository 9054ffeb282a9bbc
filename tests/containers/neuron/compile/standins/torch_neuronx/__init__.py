"""torch-neuronx, as far as compiling and serving call it; see `README.md`."""

import os

import neuron_over_torch

if not neuron_over_torch.on_device() and not os.environ.get("NEURON_PLATFORM_TARGET_OVERRIDE"):
    raise RuntimeError("no Neuron device was found, and no platform is named")

neuron_over_torch.add_operator("forward_v2")

# https://awsdocs-neuron.readthedocs-hosted.com/en/latest/compiler/neuronx-cc/api-reference-guide/index.html
OPTIONS = {
    "--target": ("inf2", "trn1"),
    "--model-type": ("generic", "transformer"),
    "--auto-cast": ("matmult", "all", "none"),
    "--auto-cast-type": ("bf16", "fp16", "tf32"),
}


def trace(func, example_inputs, *_, compiler_args=None, cpu_backend=False):
    arguments = compiler_args or []
    options = neuron_over_torch.parsed(arguments, OPTIONS)
    if not cpu_backend or "--target" not in options:
        raise RuntimeError(
            "If you want to compile on CPU, please supply compiler argument target, with one of "
            'options trn1, inf2, trn1n, or trn2. Ex: "--target trn1"'
        )
    neuron_over_torch.record("torch_neuronx", example_inputs, arguments)
    return neuron_over_torch.graph(func, example_inputs, "forward_v2", 1)
