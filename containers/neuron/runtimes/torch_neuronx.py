"""Runs graphs of torch-neuronx, on inf2 and trn1. Never run on the device; see the package."""

from pathlib import Path

# Imported first: it adds the operator that the graphs consist of, as torch_neuron does.
import torch_neuronx  # noqa: F401

from containers.neuron.manifest import Manifest
from containers.neuron.runtimes.torch_script import TorchScriptSession


def open_session(model_dir: Path, manifest: Manifest, *, threads: int) -> TorchScriptSession:
    """Loads graphs on the NeuronCores that NEURON_RT_VISIBLE_CORES names.

    Args:
        model_dir: holds the manifest's graphs.
        manifest: names the graphs, and their inputs and outputs in order.
        threads: threads that share one operator on the CPU.

    Raises:
        ModelLoadError: a graph cannot be loaded.
    """
    return TorchScriptSession(model_dir, manifest, threads=threads)
