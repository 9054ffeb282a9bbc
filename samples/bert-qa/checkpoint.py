"""Writes the sample as a Hugging Face checkpoint: `python samples/bert-qa/checkpoint.py DIRECTORY`.

The sample is committed as an ONNX graph alone. This takes the weights out of the graph, for people
who want to publish a checkpoint and have none. Needs `make export`.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from safetensors.numpy import save_file

MODEL = Path(__file__).parent / "model"
# The matrices of a layer, in the order in which the graph uses them.
LAYER_MATRICES = (
    "attention.self.query", "attention.self.key", "attention.self.value",
    "attention.output.dense", "intermediate.dense", "output.dense",
)  # fmt: skip


def read_weights() -> dict[str, np.ndarray]:
    """Returns the network's weights, with the names that transformers has for them.

    Raises:
        ValueError: the graph has not as many matrices as the network.
    """
    layers = json.loads((MODEL / "config.json").read_text("utf-8"))["num_hidden_layers"]
    graph = onnx.load(str(MODEL / "model.onnx")).graph
    arrays = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    # The exporter keeps the names of all weights but those of matrix products, which it transposes
    # and numbers.
    weights = {
        name.removeprefix("model."): array
        for name, array in arrays.items()
        if name.startswith("model.") and array.dtype == np.float32
    }
    names = [f"bert.encoder.layer.{n}.{part}" for n in range(layers) for part in LAYER_MATRICES]
    matrices = [
        array.T for name, array in arrays.items() if name.startswith("val_") and array.ndim == 2
    ]
    for name, matrix in zip([*names, "qa_outputs"], matrices, strict=True):
        weights[f"{name}.weight"] = np.ascontiguousarray(matrix)
    return weights


def main(directory: Path) -> None:
    """Writes config.json, model.safetensors and tokenizer.json into a new directory."""
    weights = read_weights()
    directory.mkdir(parents=True)
    save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})
    for name in ("config.json", "tokenizer.json"):
        shutil.copyfile(MODEL / name, directory / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
