"""Runs TorchScript: traced for the CPU, or by torch-neuron or torch-neuronx for their devices.

The module imported beforehand decides which of them runs, see `selection`. torch-neuron and
torch-neuronx never ran on their devices.
"""

from pathlib import Path

import torch

from containers.encoders.manifest import Manifest
from containers.encoders.session import Inputs, Outputs
from containers.serving.predictor import ModelLoadError


class TorchScriptSession:
    """A `Session` of PyTorch; `ModelLoadError` if a graph cannot be loaded."""

    def __init__(self, model_dir: Path, manifest: Manifest, *, threads: int) -> None:
        torch.set_num_threads(threads)
        self._manifest = manifest
        self._graphs = {}
        for length in manifest.buckets:
            name = manifest.graphs[length]
            try:
                self._graphs[length] = torch.jit.load(str(model_dir / name))
            # torch raises RuntimeError and ValueError, and the Neuron runtime any exception.
            except Exception as error:
                raise ModelLoadError(
                    f"{manifest.runtime} cannot load {name}: {' '.join(str(error).split())}"
                ) from error

    def run(self, inputs: Inputs) -> Outputs:
        names = self._manifest.inputs
        graph = self._graphs[inputs[names[0]].shape[1]]
        tensors = tuple(torch.from_numpy(inputs[name]) for name in names)
        with torch.no_grad():
            computed = graph(*tensors)
        values = computed if isinstance(computed, (tuple, list)) else (computed,)
        return {
            name: value.float().numpy()
            for name, value in zip(self._manifest.outputs, values, strict=True)
        }
