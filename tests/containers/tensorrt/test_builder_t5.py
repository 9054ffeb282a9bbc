"""NVIDIA's own parser and builder make engines of T5's graphs; running one takes a GPU.

The builder is TensorRT for RTX: its parser and its type rules are TensorRT's, its engines are not.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.containers.tensorrt.t5_models import HEAD_DIM, HEADS, VOCABULARY, T5Graphs
from tests.support.groups import load

trt = load("tensorrt_rtx_bindings", group="builder")
load("torch", group="torch")
load("transformers", group="torch")
load("onnxscript", group="torch")

pytestmark = [
    pytest.mark.builder,
    pytest.mark.torch,
    # transformers and torch deprecate each other's and their own names in every release.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

# The GPUs of ml.g4dn, ml.p4d, ml.g5 and ml.g6.
ARCHITECTURES = ("SM75", "SM80", "SM86", "SM89")
BATCH, SOURCE, NEW_TOKENS = 8, 128, 64
# The least, the usual and the most of every axis. A step has one token; the cache never holds the
# last new token, which is returned and not fed again.
AXES = {
    "batch": (1, BATCH, BATCH),
    "source": (1, SOURCE // 2, SOURCE),
    "sequence": (1, 1, 1),
    "past": (0, NEW_TOKENS // 2, NEW_TOKENS - 1),
}


class Log(trt.ILogger):  # type: ignore[misc]
    """Keeps what the parser and the builder say."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[str] = []

    def log(self, severity: Any, message: str) -> None:
        if severity in (trt.ILogger.Severity.ERROR, trt.ILogger.Severity.INTERNAL_ERROR):
            self.errors.append(message)


def axes(name: str) -> tuple[str, ...]:
    if name.startswith("past_key_values."):
        return ("batch", "", "past", "")
    if name.startswith("cross_key_values."):
        return ("batch", "", "source", "")
    return ("batch", "source")


def decoder_axes(name: str) -> tuple[str, ...]:
    return ("batch", "sequence") if name == "input_ids" else axes(name)


class Network:
    """A graph as the parser understood it, strongly typed: no type but those in the graph."""

    def __init__(self, graph: Path) -> None:
        self.log = Log()
        self._axes = decoder_axes if graph.name == "decoder.onnx" else axes
        self._builder = trt.Builder(self.log)
        self._network = self._builder.create_network(
            1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
        )
        self._parser = trt.OnnxParser(self._network, self.log)
        self.is_parsed = self._parser.parse_from_file(str(graph))

    def tensors(self, kind: str) -> dict[str, tuple[Any, tuple[int, ...]]]:
        """Type and shape of each `input` or `output`; -1 is a size that is known at run time."""
        count = getattr(self._network, f"num_{kind}s")
        found = [getattr(self._network, f"get_{kind}")(number) for number in range(count)]
        return {tensor.name: (tensor.dtype, tuple(tensor.shape)) for tensor in found}

    @property
    def product_types(self) -> set[Any]:
        """The types that matrix products put out."""
        layers = [self._network.get_layer(number) for number in range(self._network.num_layers)]
        kind = trt.LayerType.MATRIX_MULTIPLY
        return {layer.get_output(0).dtype for layer in layers if layer.type == kind}

    def build(self, architecture: str) -> int | None:
        """Builds an engine for one architecture; its size in bytes, or None where it is refused."""
        assert self.is_parsed
        config = self._builder.create_builder_config()
        profile = self._builder.create_optimization_profile()
        for name, (_, shape) in self.tensors("input").items():
            named = zip(self._axes(name), shape, strict=True)
            ranges = [AXES[axis] if axis else (size,) * 3 for axis, size in named]
            profile.set_shape(name, *zip(*ranges, strict=True))
        assert config.add_optimization_profile(profile) == 0
        config.num_compute_capabilities = 1
        config.set_compute_capability(trt.ComputeCapability.__members__[architecture], 0)
        plan = self._builder.build_serialized_network(self._network, config)
        return None if plan is None else plan.nbytes


def cache(prefix: str, layers: int, kind: Any) -> dict[str, tuple[Any, tuple[int, ...]]]:
    parts = [f"{layer}.{part}" for layer in range(layers) for part in ("key", "value")]
    return {f"{prefix}.{part}": (kind, (-1, HEADS, -1, HEAD_DIM)) for part in parts}


class TestHalfPrecision:
    @pytest.fixture(params=["encoder", "decoder"])
    def graph(self, request: pytest.FixtureRequest, half_flan_graphs: T5Graphs) -> Path:
        path: Path = getattr(half_flan_graphs, request.param)
        return path

    @pytest.mark.parametrize("architecture", ARCHITECTURES)
    def test_engine_is_built(self, graph: Path, architecture: str) -> None:
        network = Network(graph)
        size_bytes = network.build(architecture)
        assert network.log.errors == []
        # Its weights, the embedding or the head among them, are in it.
        assert size_bytes is not None
        assert size_bytes > 2 * VOCABULARY * 40

    def test_no_matrix_product_is_of_float32(self, graph: Path) -> None:
        assert Network(graph).product_types == {trt.DataType.HALF}


def test_parser_sees_the_contract(half_flan_graphs: T5Graphs) -> None:
    half, int64 = trt.DataType.HALF, trt.DataType.INT64
    layers = half_flan_graphs.decoder_layers
    encoder, decoder = Network(half_flan_graphs.encoder), Network(half_flan_graphs.decoder)
    assert encoder.tensors("input") == dict.fromkeys(
        ("input_ids", "attention_mask"), (int64, (-1, -1))
    )
    assert encoder.tensors("output") == cache("cross_key_values", layers, half)
    assert decoder.tensors("input") == {
        **dict.fromkeys(("input_ids", "encoder_attention_mask"), (int64, (-1, -1))),
        **cache("past_key_values", layers, half),
        **cache("cross_key_values", layers, half),
    }
    present = cache("present", layers, half)
    found = decoder.tensors("output")
    # The parser does not see that the logits are of one position.
    assert found.pop("logits") == (half, (-1, -1, VOCABULARY))
    assert found == present


@pytest.mark.parametrize("part", ["encoder", "decoder"])
def test_float32_is_refused_on_turing(t5_graphs: T5Graphs, part: str) -> None:
    network = Network(getattr(t5_graphs, part))
    assert network.build("SM75") is None
    assert "for Turing (SM75): FP32 GEMM is not supported" in network.log.errors[-1]
    assert Network(getattr(t5_graphs, part)).build("SM86") is not None


def test_a_wo_in_float32_would_be_refused_on_turing(
    half_flan_graphs: T5Graphs, tmp_path: Path
) -> None:
    """As transformers has it: why the graphs have it in float16, scaled."""
    import onnx

    graph = onnx.load(half_flan_graphs.encoder)
    nodes = graph.graph.node
    # What the scaled output is cast to, to be added: cast the product's inputs instead.
    casts = {node.input[0]: node for node in nodes if node.op_type == "Cast"}
    weights = {initialiser.name for initialiser in graph.graph.initializer}
    product = next(
        node
        for node in nodes
        if node.op_type == "MatMul"
        and node.output[0] in casts
        and node.input[1] in weights
        and any(
            after.op_type == "Mul" and casts[node.output[0]].output[0] in after.input
            for after in nodes
        )
    )
    position = list(nodes).index(product)
    for number, name in enumerate(list(product.input)):
        wide = f"{name}_wide"
        cast = onnx.helper.make_node("Cast", [name], [wide], to=onnx.TensorProto.FLOAT)
        nodes.insert(position, cast)
        product.input[number] = wide
    path = tmp_path / "encoder.onnx"
    onnx.save(graph, path)

    network = Network(path)

    assert network.product_types == {trt.DataType.HALF, trt.DataType.FLOAT}
    assert network.build("SM75") is None
    assert "for Turing (SM75): FP32 GEMM is not supported" in network.log.errors[-1]
