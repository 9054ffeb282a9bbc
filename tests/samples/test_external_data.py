"""Graphs whose weights are references into a checkpoint compute what they computed before."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.support.groups import load

onnx = load("onnx", group="torch")
safetensors_numpy = load("safetensors.numpy", group="torch")

import onnxruntime  # noqa: E402  (after the skips, with the rest)

from samples.external_data import CHECKPOINT, refer_to_safetensors  # noqa: E402

pytestmark = pytest.mark.torch

WIDTH = 20
COMPUTED = "bias.table"


@pytest.fixture
def weights() -> dict[str, npt.NDArray[np.float32]]:
    """By their names in the graph; numbers that float16 holds too."""
    numbers = np.random.default_rng(1)
    shapes = {"inner.weight": (WIDTH, WIDTH), "val_3": (WIDTH, WIDTH), COMPUTED: (1, WIDTH * 8)}
    return {
        name: numbers.standard_normal(shape).astype(np.float16).astype(np.float32)
        for name, shape in shapes.items()
    }


@pytest.fixture
def graph(weights: dict[str, npt.NDArray[np.float32]], tmp_path: Path) -> Path:
    """Two matrix products, the second by a matrix that the exporter has transposed."""
    path = tmp_path / "model.onnx"
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    constants = weights | {"bias": np.ones(WIDTH, dtype=np.float32)}
    nodes = [
        helper.make_node("MatMul", ["x", "inner.weight"], ["inner"]),
        helper.make_node("Add", ["inner", "bias"], ["added"]),
        helper.make_node("MatMul", ["added", "val_3"], ["y"]),
        helper.make_node("Identity", [COMPUTED], ["table"]),
    ]
    made = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", float32, [1, WIDTH])],
        [
            helper.make_tensor_value_info("y", float32, [1, WIDTH]),
            helper.make_tensor_value_info("table", float32, [1, WIDTH * 8]),
        ],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opsets = [helper.make_opsetid("", 20)]
    onnx.save(helper.make_model(made, opset_imports=opsets, ir_version=10), path)
    return path


def computed(graph: Path) -> list[npt.NDArray[np.float32]]:
    session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
    found: list[npt.NDArray[np.float32]] = session.run(
        None, {"x": np.arange(WIDTH, dtype=np.float32)[None]}
    )
    return found


@pytest.mark.parametrize("stored", [np.float16, np.float32])
def test_weights_become_references(
    weights: dict[str, npt.NDArray[np.float32]], graph: Path, stored: type
) -> None:
    before, size_before = computed(graph), graph.stat().st_size
    tensors = {"inner.weight": weights["inner.weight"], "head.weight": weights["val_3"].T}
    safetensors_numpy.save_file(
        {name: np.ascontiguousarray(array.astype(stored)) for name, array in tensors.items()},
        graph.with_name(CHECKPOINT),
    )
    assert refer_to_safetensors(graph, computed=(COMPUTED,)) == len(tensors)
    assert size_before - graph.stat().st_size > 2000
    for found, expected in zip(computed(graph), before, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_weight_that_is_in_no_checkpoint_is_an_error(
    weights: dict[str, npt.NDArray[np.float32]], graph: Path
) -> None:
    before = graph.read_bytes()
    checkpoint = {"inner.weight": weights["inner.weight"], "head.weight": weights["val_3"] + 1}
    safetensors_numpy.save_file(checkpoint, graph.with_name(CHECKPOINT))
    with pytest.raises(ValueError, match=r"weight val_3 \[20, 20\] .* is not in model\.safetens"):
        refer_to_safetensors(graph, computed=(COMPUTED,))
    assert graph.read_bytes() == before
