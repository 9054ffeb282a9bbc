"""Runs an ONNX graph on the CPU; serves samples on a laptop, without torch."""

from pathlib import Path
from typing import Final

import onnxruntime

from containers.neuron.manifest import Manifest
from containers.neuron.runtimes.session import Inputs, Outputs
from containers.serving.predictor import ModelLoadError

_LOG_ERRORS_ONLY: Final = 3
_INPUT_TYPE: Final = "tensor(int64)"


class OnnxRuntimeSession:
    """A `Session` of ONNX Runtime.

    Args:
        model_dir: holds the manifest's graphs; buckets may share one.
        manifest: names the graphs, their inputs and outputs.
        threads: threads that share one operator.

    Raises:
        ModelLoadError: a graph cannot be loaded, or its inputs or outputs differ from the
            manifest's.
    """

    def __init__(self, model_dir: Path, manifest: Manifest, *, threads: int) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = _LOG_ERRORS_ONLY
        # Threads that spin between batches would take processors from the HTTP server.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._manifest = manifest
        by_file: dict[str, onnxruntime.InferenceSession] = {}
        for name in manifest.graphs.values():
            if name not in by_file:
                by_file[name] = self._open(model_dir, name, options)
        self._sessions = {length: by_file[manifest.graphs[length]] for length in manifest.buckets}

    def run(self, inputs: Inputs) -> Outputs:
        """Computes one batch; see `Session.run`."""
        names = self._manifest.inputs
        columns = inputs[names[0]].shape[1]
        bucket = next(length for length in self._manifest.buckets if columns <= length)
        session = self._sessions[bucket]
        outputs = session.run(list(self._manifest.outputs), {name: inputs[name] for name in names})
        return dict(zip(self._manifest.outputs, outputs, strict=True))

    def _open(
        self, model_dir: Path, name: str, options: onnxruntime.SessionOptions
    ) -> onnxruntime.InferenceSession:
        try:
            session = onnxruntime.InferenceSession(
                str(model_dir / name), options, providers=["CPUExecutionProvider"]
            )
        # ONNX Runtime's errors have no public base class of their own.
        except Exception as error:
            raise ModelLoadError(f"ONNX Runtime cannot load {name}: {error}") from error
        inputs = {item.name: item.type for item in session.get_inputs()}
        outputs = {item.name for item in session.get_outputs()}
        wanted = self._manifest.inputs
        problems = [
            f"input {item} is {inputs.get(item, 'missing')}"
            for item in wanted
            if inputs.get(item) != _INPUT_TYPE
        ]
        problems += [
            f"input {item} is not in the manifest" for item in inputs if item not in wanted
        ]
        problems += [
            f"output {item} is missing" for item in self._manifest.outputs if item not in outputs
        ]
        if problems:
            raise ModelLoadError(f"{name} is not the manifest's graph: {'; '.join(problems)}")
        return session
