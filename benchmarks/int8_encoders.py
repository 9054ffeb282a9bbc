"""Makes the model directory of `benchmarks.neuron.models` with weights in int8.

    python -m benchmarks.int8_encoders '{"name": ...}' FOLDER SEED

It runs in a process of its own, so that PyTorch is not in the benchmark's.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks.neuron.design import Bert
from benchmarks.neuron.models import ensure_model, make
from benchmarks.program import ROOT, Say
from containers.encoders.manifest import read_manifest, write_manifest


def ensure_int8(model: Bert, parent: Path, seed: int, say: Say) -> Path:
    return ensure_model(
        replace(model, name=f"{model.name}-int8", title=f"{model.title} in int8"),
        parent,
        seed,
        say,
        maker="benchmarks.int8_encoders",
        sources=(Path(__file__), ROOT / "containers/tensorrt/export/int8.py"),
    )


def make_int8(model: Bert, folder: Path, seed: int) -> None:
    from benchmarks.baselines.torch_script import MODEL_FILE
    from containers.tensorrt.export.int8 import quantize_graph

    make(model, folder, seed)
    (folder / MODEL_FILE).unlink()
    quantize_graph(folder / "model.onnx")
    write_manifest(replace(read_manifest(folder), dtype="int8"), folder)


if __name__ == "__main__":
    make_int8(Bert(**json.loads(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3]))
