"""Quantised step graphs: what is quantised, how exact it is, and that batches change no answer."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.support.groups import load

onnx = load("onnx", group="torch")
load("onnx_ir", group="torch")
load("torch", group="torch")

import onnxruntime  # noqa: E402  (after the skips)

from containers.tensorrt.export.int8 import quantize_graph  # noqa: E402
from containers.tensorrt.export.parity import padded, start_step_graph  # noqa: E402
from tests.containers.tensorrt.compile.jobs import SAMPLE  # noqa: E402

pytestmark = pytest.mark.torch

PROMPTS = ([5, 17, 900, 3], [40], [7, 7, 7, 8, 8, 8, 9])


def quantized(exact, folder):
    folder.mkdir()
    graph = folder / "model.onnx"
    shutil.copyfile(exact, graph)
    assert quantize_graph(graph) == 21  # four of each of five layers, and the output head
    return graph


@pytest.fixture(scope="module")
def exact(tmp_path_factory):
    """The sample's graph with its weights inside in float32, as an export has them."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(tmp_path_factory.mktemp("exact") / "model.onnx")
    onnxruntime.InferenceSession(
        str(SAMPLE / "model.onnx"), options, providers=["CPUExecutionProvider"]
    )
    return Path(options.optimized_model_filepath)


@pytest.fixture(scope="module")
def graph(exact, tmp_path_factory):
    return quantized(exact, tmp_path_factory.mktemp("int8") / "first")


def logits(graph, prompts):
    session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
    found, advance = start_step_graph(session, *padded(prompts, on_the_left=True))
    return np.stack([found, advance(np.full((len(prompts), 1), 11))])


def test_no_product_with_float_weights_is_left_and_the_bytes_are_the_same_again(
    exact, graph, tmp_path
):
    model = onnx.load(graph)
    types = {each.name: each.data_type for each in model.graph.initializer}
    left = [node.name for node in model.graph.node
            if node.op_type in ("Gemm", "MatMul") and node.input[1] in types]  # fmt: skip
    assert left == []
    products = [node for node in model.graph.node if node.op_type == "MatMulIntegerToFloat"]
    assert {types[node.input[1]] for node in products} == {onnx.TensorProto.INT8}
    assert quantized(exact, tmp_path / "again").read_bytes() == graph.read_bytes()
    assert graph.stat().st_size < 0.6 * exact.stat().st_size


def test_the_tokens_are_those_of_the_float_graph(exact, graph):
    wanted, found = logits(exact, PROMPTS), logits(graph, PROMPTS)
    assert (wanted.argmax(axis=-1) == found.argmax(axis=-1)).all()
    assert 0 < np.abs(wanted - found).max() < 0.05 * np.abs(wanted).max()


def test_an_answer_does_not_depend_on_the_texts_that_share_its_batch(graph):
    together = logits(graph, PROMPTS)
    for row, prompt in enumerate(PROMPTS):
        np.testing.assert_allclose(together[:, row], logits(graph, (prompt,))[:, 0], atol=1e-2)
