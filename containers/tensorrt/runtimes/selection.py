"""Picks the runtime for a model directory, and says in the log which and why."""

import logging
from pathlib import Path
from typing import Any

import onnxruntime

from containers.serving.logs import log_event
from containers.serving.predictor import ModelLoadError
from containers.tensorrt.model_directory import GRAPH_FILE, ModelConfig, engine_files
from containers.tensorrt.runtimes.onnx_runtime import OnnxRuntimeSession
from containers.tensorrt.settings import GenerationSettings
from containers.tensorrt.stepping import StepSession

_logger = logging.getLogger(__name__)


def open_session(
    model_dir: Path, config: ModelConfig, settings: GenerationSettings
) -> StepSession[Any]:
    """Returns a session of the runtime that fits what is in `model_dir`.

    Raises:
        ModelLoadError: the directory holds an engine, which nothing here can run, or the graph
            cannot be loaded. An engine beside a graph is refused too: whoever published it paid
            for a GPU, and would get the speed of a CPU without noticing.
    """
    engines = engine_files(model_dir)
    if engines:
        raise ModelLoadError(
            f"{', '.join(engines)} needs TensorRT's runtime, which this container does not have: "
            f"publish the ONNX graph ({GRAPH_FILE}) without an engine"
        )
    session = OnnxRuntimeSession(model_dir, config, intra_op_threads=settings.intra_op_threads)
    log_event(
        _logger,
        logging.INFO,
        "backend_selected",
        backend="onnxruntime-cpu",
        version=onnxruntime.__version__,
        intra_op_threads=settings.intra_op_threads or "physical cores",
        reason=f"the model directory holds {GRAPH_FILE} and no TensorRT engine",
    )
    return session
