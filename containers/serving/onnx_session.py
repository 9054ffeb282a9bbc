"""Opens an ONNX graph with ONNX Runtime. It keeps to Python 3.10."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import onnxruntime

from containers.serving.predictor import ModelLoadError

_LOG_ERRORS_ONLY: Final = 3


def open_graph(
    path: Path, *, threads: int, providers: Sequence[str] = ("CPUExecutionProvider",)
) -> onnxruntime.InferenceSession:
    """Returns a session that leaves processors to the HTTP server, or raises `ModelLoadError`.

    `threads` share one operator; 0 takes one per physical core. `providers` are in the order of
    preference.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _LOG_ERRORS_ONLY
    # Threads that spin between two calls would take processors from the HTTP server.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=list(providers))
    # ONNX Runtime's errors have no public base class of their own.
    except Exception as error:
        raise ModelLoadError(f"ONNX Runtime cannot load {path.name}: {error}") from error
