"""Opens the runtime that a model directory is for, and logs which. It keeps to Python 3.10."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnxruntime

from containers.serving.logs import log_info
from containers.serving.predictor import ModelLoadError
from containers.tensorrt.engine_metadata import EngineLimits
from containers.triton.decoding import SequenceSession
from containers.triton.model_directory import (
    DECODER_ENGINE,
    DECODER_GRAPH,
    ENCODER_ENGINE,
    ENCODER_GRAPH,
    SequenceConfig,
    check_files,
)
from containers.triton.onnx_session import OnnxSequenceSession


@dataclass(frozen=True)
class SessionLimits(EngineLimits):
    """The largest batches that a session must be able to compute, its threads and its GPU.

    `threads` share one operator on the CPU; 0 takes one per physical core.
    """

    threads: int
    device: int = 0


# Any: only the session knows the type of its state.
def open_session(
    model_dir: Path, config: SequenceConfig, limits: SessionLimits
) -> SequenceSession[Any]:
    """Returns a session of the runtime that fits the model's files, or raises `ModelLoadError`.

    Graphs beside engines do not serve in their place. The publisher pays for a GPU, and would get
    the speed of a CPU without noticing.
    """
    if check_files(model_dir):
        try:
            # Imported here, since only the container's image has its dependencies.
            from containers.triton.tensorrt_session import open_engine_session
        except ImportError as error:
            raise ModelLoadError(
                f"{ENCODER_ENGINE} and {DECODER_ENGINE} need TensorRT and CUDA, which are not "
                f"installed here ({error}): serve them in the container's image, or publish the "
                "model for the CPU"
            ) from error
        return open_engine_session(model_dir, config, limits, limits.device)
    session = OnnxSequenceSession(model_dir, threads=limits.threads)
    log_info(
        "backend_selected",
        backend="onnxruntime-cpu",
        version=onnxruntime.__version__,
        intra_op_threads=limits.threads or "physical cores",
        reason=f"the model directory holds {ENCODER_GRAPH} and {DECODER_GRAPH}, and no engines",
    )
    return session
