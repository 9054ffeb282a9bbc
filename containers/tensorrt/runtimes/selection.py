"""Selects the runtime for a model directory, and logs the runtime and the reason."""

from pathlib import Path
from typing import Any

import onnxruntime

from containers.serving.logs import log_info
from containers.serving.predictor import ModelLoadError
from containers.serving.settings import ServingSettings
from containers.tensorrt.engine_metadata import ENGINE_FILE
from containers.tensorrt.model_directory import GRAPH_FILE, ModelConfig, engine_files
from containers.tensorrt.runtimes.onnx_runtime import OnnxRuntimeSession
from containers.tensorrt.settings import GenerationSettings
from containers.tensorrt.stepping import StepSession


def open_session(
    model_dir: Path,
    config: ModelConfig,
    settings: GenerationSettings,
    *,
    max_batch_size: int = ServingSettings.max_batch_size,
) -> StepSession[Any]:  # Any: only the session knows the type of its cache
    """Returns a session of the runtime that fits the files in `model_dir`.

    A graph beside an engine that cannot serve here does not serve in its place. The publisher pays
    for a GPU, and would get the speed of a CPU without noticing.
    """
    engines = engine_files(model_dir)
    if engines:
        if ENGINE_FILE not in engines:
            raise ModelLoadError(
                f"{', '.join(engines)} cannot be served: the engine must be called {ENGINE_FILE}, "
                "as publishing names it"
            )
        try:
            # Imported here, since only the container's image has its dependencies.
            from containers.tensorrt.runtimes.tensorrt.session import open_engine_session
        except ImportError as error:
            raise ModelLoadError(
                f"{ENGINE_FILE} needs TensorRT and CUDA, which are not installed here ({error}): "
                f"serve it in the container's image, or publish {GRAPH_FILE} without an engine"
            ) from error
        return open_engine_session(model_dir, config, settings, max_batch_size=max_batch_size)
    session = OnnxRuntimeSession(model_dir, config, intra_op_threads=settings.intra_op_threads)
    log_info(
        "backend_selected",
        backend=f"onnxruntime-{session.device}",
        version=onnxruntime.__version__,
        available_providers=onnxruntime.get_available_providers(),
        intra_op_threads=settings.intra_op_threads or "physical cores",
        reason=f"the model directory holds {GRAPH_FILE} and no TensorRT engine",
    )
    return session
