"""Runs an ONNX graph on the CPU; serves samples on a laptop, without torch."""

from pathlib import Path
from typing import Final

import onnxruntime

from containers.encoders.manifest import Manifest
from containers.encoders.session import Inputs, Outputs
from containers.serving.onnx_session import open_graph
from containers.serving.predictor import ModelLoadError

_INPUT_TYPE: Final = "tensor(int64)"


class OnnxRuntimeSession:
    """A `Session` of ONNX Runtime; buckets may share a graph.

    Raises `ModelLoadError` if a graph cannot be loaded, or its inputs or outputs differ from the
    manifest's.
    """

    def __init__(self, model_dir: Path, manifest: Manifest, *, threads: int) -> None:
        self._manifest = manifest
        by_file = {
            name: self._open(model_dir / name, threads)
            for name in dict.fromkeys(manifest.graphs.values())
        }
        self._sessions = {length: by_file[manifest.graphs[length]] for length in manifest.buckets}

    @property
    def takes_any_length(self) -> bool:
        return not any(
            isinstance(item.shape[1], int)
            for session in self._sessions.values()
            for item in session.get_inputs()
        )

    def run(self, inputs: Inputs) -> Outputs:
        names = self._manifest.inputs
        columns = inputs[names[0]].shape[1]
        bucket = next(length for length in self._manifest.buckets if columns <= length)
        session = self._sessions[bucket]
        outputs = session.run(list(self._manifest.outputs), {name: inputs[name] for name in names})
        return dict(zip(self._manifest.outputs, outputs, strict=True))

    def _open(self, path: Path, threads: int) -> onnxruntime.InferenceSession:
        session = open_graph(path, threads=threads)
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
            raise ModelLoadError(f"{path.name} is not the manifest's graph: {'; '.join(problems)}")
        return session
