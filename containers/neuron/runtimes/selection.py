"""Opens the manifest's graphs with the manifest's runtime.

Every import is inside its branch, because an image has only the packages of its own runtime.
"""

import importlib
from pathlib import Path

from containers.encoders.manifest import CPU, Manifest
from containers.encoders.session import Session
from containers.serving.predictor import ModelLoadError


def open_session(model_dir: Path, manifest: Manifest, *, threads: int) -> Session:
    """Loads the graphs of all buckets.

    Raises `ModelLoadError` if the runtime is not installed, or refuses a graph.
    """
    try:
        if manifest.runtime == "onnxruntime":
            from containers.encoders.onnx_session import OnnxRuntimeSession

            return OnnxRuntimeSession(model_dir, manifest, threads=threads)
        if manifest.target != CPU:
            # Imported first: it adds the operators that the graphs consist of, without which
            # torch.jit.load fails.
            importlib.import_module(manifest.runtime)
        from containers.neuron.runtimes.torch_script import TorchScriptSession

        return TorchScriptSession(model_dir, manifest, threads=threads)
    except ImportError as error:
        raise ModelLoadError(
            f"a model for {manifest.target} needs {manifest.runtime}, which cannot be imported "
            f"here ({error}): serve it in the image for {manifest.target}"
        ) from error
