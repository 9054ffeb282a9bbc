"""Serves an encoder in this process: an engine on the GPU, or ONNX Runtime on the CPU."""

import threading
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from containers.encoders.manifest import TENSORRT, Manifest
from containers.encoders.onnx_session import OnnxRuntimeSession
from containers.encoders.predictor import EncoderPredictor, check_manifest
from containers.encoders.session import Session, computed, warm_up
from containers.encoders.tasks import RowOutputs
from containers.serving.logs import log_info
from containers.serving.metrics import Metrics
from containers.serving.predictor import ModelLoadError
from containers.serving.settings import ServingSettings
from containers.tensorrt.settings import TensorRTSettings

_RUNTIMES = ("onnxruntime", TENSORRT)


class SessionPredictor(EncoderPredictor):
    """An `EncoderPredictor` with one session.

    One batch is computed at a time. A full batch may go ahead: it is padded, and the batch before
    it is decoded, while the session computes.
    """

    concurrent_batches = 1
    batches_ahead = 1

    def __init__(
        self,
        settings: TensorRTSettings,
        *,
        max_batch_size: int = ServingSettings.max_batch_size,
        max_inputs: int = ServingSettings.max_queue_length,
        metrics: Metrics | None = None,
    ) -> None:
        super().__init__(
            settings.encoder, max_batch_size=max_batch_size, max_inputs=max_inputs, metrics=metrics
        )
        self._settings = settings
        self._turn = threading.Lock()
        self._session: Session

    @property
    def _takes_any_length(self) -> bool:
        session = self._session
        return isinstance(session, OnnxRuntimeSession) and session.takes_any_length

    def _check(self, manifest: Manifest) -> None:
        if manifest.runtime not in _RUNTIMES:
            raise ModelLoadError(
                f"the model was compiled for {manifest.target} with {manifest.runtime}, and this "
                "container serves NVIDIA GPUs, and ONNX Runtime on the CPU: publish it again with "
                "`container: tensorrt`"
            )
        versions = {}
        if manifest.runtime == TENSORRT:
            try:
                import tensorrt
            except ImportError as error:
                raise ModelLoadError(
                    f"a model for {manifest.target} needs TensorRT, which is not installed here "
                    f"({error}): serve it in the container's image, or publish it for the CPU"
                ) from error
            versions[TENSORRT] = tensorrt.__version__
        check_manifest(manifest, self._settings.encoder, self._max_batch_size, versions)

    def _start(self, model_dir: Path, manifest: Manifest) -> None:
        if manifest.runtime == TENSORRT:
            # Imported here, since only the container's image has its dependencies.
            from containers.tensorrt.runtimes.tensorrt.encoder_session import open_encoder_session

            self._session = open_encoder_session(model_dir, manifest)
        else:
            threads = self._settings.generation.intra_op_threads
            self._session = OnnxRuntimeSession(model_dir, manifest, threads=threads or 0)
            log_info(
                "backend_selected",
                backend="onnxruntime-cpu",
                version=onnxruntime.__version__,
                intra_op_threads=threads or "physical cores",
                reason="the model was compiled for the CPU",
            )
        warm_up(self._session, manifest)

    def _compute(self, arrays: Mapping[str, NDArray[np.int64]]) -> RowOutputs:
        with self._turn:
            return computed(self._session, self._manifest, arrays)

    def close(self) -> None:
        """Does nothing: the session ends with the process."""
