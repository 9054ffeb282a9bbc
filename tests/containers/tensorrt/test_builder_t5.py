"""NVIDIA's own parser and builder make engines of T5's graphs; running one takes a GPU.

The builder is TensorRT for RTX: its parser and its type rules are TensorRT's, its engines are not.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from containers.tensorrt.compile.profiles import EngineBuildError, EngineLimits
from containers.tensorrt.engine_metadata import EngineMetadata, graph_digest, read_metadata
from containers.triton.engine_metadata import decoder_profiles, encoder_profiles
from containers.triton.model_directory import check_files
from tests.containers.tensorrt.rtx_builder import building_for, rtx_engine_builder
from tests.containers.tensorrt.t5_models import HEAD_DIM, HEADS, VOCABULARY, T5Graphs
from tests.containers.triton.checkpoints import word_tokenizer
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
    pytest.mark.filterwarnings("ignore:.*Timing cache operations are no-ops:DeprecationWarning"),
]

# The GPUs of ml.g4dn, ml.p4d, ml.g5 and ml.g6.
ARCHITECTURES = ("SM75", "SM80", "SM86", "SM89")
BATCH, SOURCE, NEW_TOKENS = 8, 128, 64
LIMITS = EngineLimits(max_batch_size=8, max_input_tokens=128, max_new_tokens=64)


class Log(trt.ILogger):  # type: ignore[misc]
    """Keeps what the parser and the builder say."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[str] = []

    def log(self, severity: Any, message: str) -> None:
        if severity in (trt.ILogger.Severity.ERROR, trt.ILogger.Severity.INTERNAL_ERROR):
            self.errors.append(message)


class Network:
    """A graph as the parser understood it, strongly typed: no type but those in the graph."""

    def __init__(self, graph: Path) -> None:
        self.log = Log()
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


@pytest.fixture
def engine_builder() -> Iterator[ModuleType]:
    with rtx_engine_builder() as module:
        yield module


def built(engine_builder: ModuleType, graph: Path, architecture: str) -> int:
    """Builds an engine with the container's profiles; returns its size in bytes."""
    profiles = {"encoder.onnx": encoder_profiles, "decoder.onnx": decoder_profiles}[graph.name]
    numbers: list[int] = []

    def configure(config: Any) -> None:
        building_for(architecture)(config)
        numbers.append(config.num_optimization_profiles)

    engine = engine_builder.build_engine(graph, profiles(LIMITS), configure=configure)
    assert numbers == [2 if graph.name == "decoder.onnx" else 1]
    size_bytes: int = engine.plan.nbytes
    return size_bytes


def cache(prefix: str, layers: int, kind: Any) -> dict[str, tuple[Any, tuple[int, ...]]]:
    parts = [f"{layer}.{part}" for layer in range(layers) for part in ("key", "value")]
    return {f"{prefix}.{part}": (kind, (-1, HEADS, -1, HEAD_DIM)) for part in parts}


class TestHalfPrecision:
    @pytest.fixture(params=["encoder", "decoder"])
    def graph(self, request: pytest.FixtureRequest, half_flan_graphs: T5Graphs) -> Path:
        path: Path = getattr(half_flan_graphs, request.param)
        return path

    @pytest.mark.parametrize("architecture", ARCHITECTURES)
    def test_engine_is_built(
        self, engine_builder: ModuleType, graph: Path, architecture: str
    ) -> None:
        # Its weights, the embedding or the head among them, are in it.
        assert built(engine_builder, graph, architecture) > 2 * VOCABULARY * 40

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
def test_float32_is_refused_on_turing(
    engine_builder: ModuleType, t5_graphs: T5Graphs, part: str
) -> None:
    graph = getattr(t5_graphs, part)
    with pytest.raises(EngineBuildError, match=r"for Turing \(SM75\): FP32 GEMM is not supported"):
        built(engine_builder, graph, "SM75")
    assert built(engine_builder, graph, "SM86") > 4 * VOCABULARY * 40


def test_the_profiles_of_a_graph_are_not_the_others(
    engine_builder: ModuleType, half_flan_graphs: T5Graphs
) -> None:
    with pytest.raises(
        EngineBuildError,
        match=r"^the graph is not T5's encoder: it has an input encoder_attention_mask of shape",
    ):
        engine_builder.build_engine(half_flan_graphs.decoder, encoder_profiles(LIMITS))


def test_a_wo_in_float32_would_be_refused_on_turing(
    engine_builder: ModuleType, half_flan_graphs: T5Graphs, tmp_path: Path
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

    assert Network(path).product_types == {trt.DataType.HALF, trt.DataType.FLOAT}
    with pytest.raises(EngineBuildError, match=r"for Turing \(SM75\): FP32 GEMM is not supported"):
        built(engine_builder, path, "SM75")


@pytest.mark.parametrize("keep_graph", [False, True])
def test_compiling_for_a_gpu(
    engine_builder: ModuleType,
    half_flan_graphs: T5Graphs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    keep_graph: bool,
) -> None:
    """The stages of a job for the Triton container, with the graphs that are here already."""
    from containers.tensorrt.compile.gpu import Gpu
    from containers.tensorrt.compile.job import Hyperparameters, Job
    from containers.triton.compile import model as torch_model
    from containers.triton.compile.checkpoint import read_checkpoint
    from containers.triton.compile.worker import compile_checkpoint

    checkpoint_dir, scratch = tmp_path / "checkpoint", tmp_path / "scratch"
    checkpoint_dir.mkdir()
    scratch.mkdir()
    for path in half_flan_graphs.encoder.parent.iterdir():
        if path.suffix != ".onnx":
            shutil.copyfile(path, checkpoint_dir / path.name)
    word_tokenizer().save(str(checkpoint_dir / "tokenizer.json"))
    checkpoint, problems = read_checkpoint(checkpoint_dir, None)
    assert problems == []
    assert checkpoint is not None
    graphs = (half_flan_graphs.decoder, half_flan_graphs.encoder)

    def export_graphs(given: Any, directory: Path, precision: str) -> None:
        assert precision == "fp16"
        for graph in graphs:
            shutil.copyfile(graph, directory / graph.name)

    monkeypatch.setattr(torch_model, "export_graphs", export_graphs)
    # The builder finds its GPU; this one is told it.
    builder_config = trt.Builder.create_builder_config

    def for_sm75(builder: Any) -> Any:
        config = builder_config(builder)
        building_for("SM75")(config)
        return config

    monkeypatch.setattr(trt.Builder, "create_builder_config", for_sm75)
    asked = Hyperparameters("sm75", 8, 128, 64, keep_graph=keep_graph)

    compile_checkpoint(Job(asked, checkpoint), Gpu("Tesla T4", "sm75"), scratch)

    files = {"config.json", "generation_config.json", "tokenizer.json", "engine.json"}
    files |= {"encoder.engine", "decoder.engine", "timing.cache"}
    files |= {graph.name for graph in graphs} if keep_graph else set()
    assert {path.name for path in scratch.iterdir()} == files
    assert check_files(scratch) == ".engine"
    assert read_metadata(scratch) == EngineMetadata(
        tensorrt_version=trt.__version__,
        compute_capability="sm75",
        gpu_name="Tesla T4",
        graph_sha256=graph_digest(graphs[0], graphs[1:]),
        precision="fp16",
        max_batch_size=8,
        max_input_tokens=128,
        max_new_tokens=64,
        layers=half_flan_graphs.decoder_layers,
        heads=HEADS,
        head_dim=HEAD_DIM,
        vocabulary_size=VOCABULARY,
    )
