"""Opens the runtime that a model directory is for. It keeps to Python 3.10."""

from pathlib import Path

from containers.triton.onnx_session import OnnxSequenceSession


def open_session(model_dir: Path, *, threads: int) -> OnnxSequenceSession:
    """Returns a session of ONNX Runtime over the graphs in a model directory.

    Args:
        model_dir: holds both graphs.
        threads: threads that share one operator.

    Raises:
        ModelLoadError: a graph cannot be loaded.
    """
    return OnnxSequenceSession(model_dir, threads=threads)
