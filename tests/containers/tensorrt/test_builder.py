"""NVIDIA's own parser and builder make engines of the step graph; running one takes a GPU.

The builder is TensorRT for RTX: its parser and its type rules are TensorRT's, its engines are not.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from containers.tensorrt.compile.profiles import EngineLimits, profiles
from containers.tensorrt.model_directory import ModelConfig, read_config
from slipway.config.load import environment_names, load_config
from slipway.config.sections.serving.tensorrt import TensorRTServing
from tests.containers.tensorrt.rtx_builder import building_for, rtx_engine_builder
from tests.support.groups import load

trt = load("tensorrt_rtx_bindings", group="builder")

pytestmark = pytest.mark.builder

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "samples" / "gpt2-autocomplete" / "model"
CONFIG = ROOT / "model_configs" / "gpt2-autocomplete.yaml"
# The GPUs of ml.g4dn, ml.p4d, ml.g5 and ml.g6.
ARCHITECTURES = ("SM75", "SM80", "SM86", "SM89")


class Log(trt.ILogger):
    """Keeps what the parser and the builder say."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[str] = []

    def log(self, severity: Any, message: str) -> None:
        if severity in (trt.ILogger.Severity.ERROR, trt.ILogger.Severity.INTERNAL_ERROR):
            self.errors.append(message)


@dataclass(frozen=True)
class ParserFinding:
    operator: str
    node: str
    description: str


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

    @property
    def findings(self) -> list[ParserFinding]:
        errors = [self._parser.get_error(index) for index in range(self._parser.num_errors)]
        return [ParserFinding(e.node_operator(), e.node_name(), e.desc()) for e in errors]

    @property
    def inputs(self) -> dict[str, tuple[Any, tuple[int, ...]]]:
        """Type and shape of each input; -1 is a size that is known at run time."""
        tensors = [self._network.get_input(i) for i in range(self._network.num_inputs)]
        return {tensor.name: (tensor.dtype, tuple(tensor.shape)) for tensor in tensors}

    @property
    def outputs(self) -> dict[str, tuple[Any, tuple[int, ...]]]:
        tensors = [self._network.get_output(i) for i in range(self._network.num_outputs)]
        return {tensor.name: (tensor.dtype, tuple(tensor.shape)) for tensor in tensors}

    @property
    def layer_types(self) -> set[Any]:
        """The type of everything that a layer puts out."""
        layers = [self._network.get_layer(i) for i in range(self._network.num_layers)]
        return {layer.get_output(i).dtype for layer in layers for i in range(layer.num_outputs)}

    def build(self, architecture: str, serving: TensorRTServing) -> int | None:
        """Builds an engine for one architecture; its size in bytes, or None where it is refused."""
        assert self.is_parsed, self.findings
        config = self._builder.create_builder_config()
        profile = self._profile(serving)
        assert config.add_optimization_profile(profile) == 0
        config.num_compute_capabilities = 1
        config.set_compute_capability(trt.ComputeCapability.__members__[architecture], 0)
        plan = self._builder.build_serialized_network(self._network, config)
        return None if plan is None else plan.nbytes

    def _profile(self, serving: TensorRTServing) -> Any:
        """From one token without a cache to the longest prompt and the longest cache.

        The cache never holds the last new token: it is returned and not fed again.
        """
        prompt = serving.max_input_tokens
        batch = (1, serving.max_batch_size, serving.max_batch_size)
        sequence = (1, 1, prompt)
        past = (0, prompt, prompt + serving.max_new_tokens - 1)
        profile = self._builder.create_optimization_profile()
        for name, (_, shape) in self.inputs.items():
            if name.startswith("past_key_values."):
                sizes = [(b, shape[1], p, shape[3]) for b, p in zip(batch, past, strict=True)]
            elif name == "attention_mask":
                sizes = [(b, s + p) for b, s, p in zip(batch, sequence, past, strict=True)]
            else:
                sizes = list(zip(batch, sequence, strict=True))
            profile.set_shape(name, *sizes)
        return profile


@pytest.fixture(scope="module")
def serving() -> TensorRTServing:
    """The limits of the config that ships with the sample."""
    loaded = load_config(CONFIG, ROOT, "local", environment_names(ROOT))
    assert isinstance(loaded.config.serving, TensorRTServing)
    return loaded.config.serving


def contract(
    model: ModelConfig, float_type: Any
) -> tuple[dict[str, tuple[Any, tuple[int, ...]]], dict[str, tuple[Any, tuple[int, ...]]]]:
    """The inputs and outputs that the export of GPT-2 documents, as the parser sees them.

    It does not see that the logits are of one position.
    """
    cache = (float_type, (-1, model.heads, -1, model.head_dim))
    parts = [f"{layer}.{part}" for layer in range(model.layers) for part in ("key", "value")]
    tokens = dict.fromkeys(
        ("input_ids", "attention_mask", "position_ids"), (trt.DataType.INT64, (-1, -1))
    )
    return (
        tokens | {f"past_key_values.{part}": cache for part in parts},
        {"logits": (float_type, (-1, -1, model.vocabulary_size))}
        | {f"present.{part}": cache for part in parts},
    )


def test_licence_keeps_it_out_of_images() -> None:
    lists = [ROOT / "requirements.txt", *ROOT.glob("containers/*/requirements*")]
    recipes = [*lists, *ROOT.glob("containers/*/Dockerfile")]
    assert len(recipes) > len(lists) > 1
    assert [path for path in recipes if "tensorrt-rtx" in path.read_text()] == []


class TestCommittedSample:
    """The float32 graph, whose weights lie in the checkpoint beside it."""

    @pytest.fixture
    def network(self) -> Network:
        return Network(SAMPLE / "model.onnx")

    def test_parser_sees_the_contract(self, network: Network) -> None:
        assert network.is_parsed, network.findings
        inputs, outputs = contract(read_config(SAMPLE), trt.DataType.FLOAT)
        assert network.inputs == inputs
        assert network.outputs == outputs

    @pytest.mark.parametrize("architecture", ARCHITECTURES[1:])
    def test_engine_is_built(
        self, network: Network, serving: TensorRTServing, architecture: str
    ) -> None:
        size_bytes = network.build(architecture, serving)
        assert network.log.errors == []
        # The engine holds the weights, the tied embedding at least once.
        assert size_bytes is not None
        assert size_bytes > (SAMPLE / "model.safetensors").stat().st_size

    def test_float32_is_refused_on_turing(self, network: Network, serving: TensorRTServing) -> None:
        assert network.build("SM75", serving) is None
        assert "for Turing (SM75): FP32 GEMM is not supported" in network.log.errors[-1]

    def test_missing_weights_are_reported(self, tmp_path: Path) -> None:
        graph = Path(shutil.copy(SAMPLE / "model.onnx", tmp_path))
        network = Network(graph)
        assert not network.is_parsed
        assert f"Failed to open file: {tmp_path / 'model.safetensors'}" in network.log.errors[0]

    def test_unknown_operator_is_reported(self, tmp_path: Path) -> None:
        shutil.copy(SAMPLE / "model.safetensors", tmp_path)
        graph = tmp_path / "model.onnx"
        # As long as the name that it replaces: the file's lengths still hold.
        content = (SAMPLE / "model.onnx").read_bytes()
        assert b"Softmax" in content
        graph.write_bytes(content.replace(b"Softmax", b"Softmix"))

        network = Network(graph)

        assert not network.is_parsed
        # One for each layer's attention.
        assert len(network.findings) == read_config(SAMPLE).layers
        for finding in network.findings:
            assert finding.operator == "Softmix"
            assert finding.node.startswith("node_Softmix_")
            assert "Plugin not found, are the plugin name, version, and namespace correct?" in (
                finding.description
            )


@pytest.mark.torch
# transformers and torch deprecate each other's and their own names in every release.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
class TestHalfPrecision:
    """A float16 graph of a random model: the types of an engine are those of its graph."""

    MODEL = ModelConfig(
        layers=2,
        heads=3,
        head_dim=24,
        max_positions=128,
        vocabulary_size=97,
        eos_token_ids=frozenset({0}),
    )

    @pytest.fixture(scope="class")
    def graph(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        torch = load("torch", group="torch")
        transformers = load("transformers", group="torch")
        # It imports them.
        from containers.tensorrt.export.gpt2 import export_gpt2_step

        torch.manual_seed(5)
        model = transformers.GPT2LMHeadModel(
            transformers.GPT2Config(
                vocab_size=self.MODEL.vocabulary_size,
                n_positions=self.MODEL.max_positions,
                n_embd=self.MODEL.heads * self.MODEL.head_dim,
                n_layer=self.MODEL.layers,
                n_head=self.MODEL.heads,
                bos_token_id=0,
                eos_token_id=0,
            )
        )
        path = tmp_path_factory.mktemp("half") / "model.onnx"
        export_gpt2_step(model.half().eval(), path, precision="fp16")
        return path

    @pytest.fixture
    def network(self, graph: Path) -> Network:
        return Network(graph)

    def test_parser_sees_the_contract(self, network: Network) -> None:
        assert network.is_parsed, network.findings
        inputs, outputs = contract(self.MODEL, trt.DataType.HALF)
        assert network.inputs == inputs
        assert network.outputs == outputs

    def test_no_layer_puts_out_float32(self, network: Network) -> None:
        assert trt.DataType.HALF in network.layer_types
        assert trt.DataType.FLOAT not in network.layer_types

    @pytest.mark.parametrize("architecture", ARCHITECTURES)
    def test_engine_is_built(
        self, network: Network, serving: TensorRTServing, architecture: str
    ) -> None:
        size_bytes = network.build(architecture, serving)
        assert network.log.errors == []
        assert size_bytes is not None
        assert size_bytes > self.least_bytes

    @pytest.mark.parametrize("architecture", ARCHITECTURES)
    def test_an_engine_finds_candidates(self, graph: Path, architecture: str) -> None:
        """Half the vocabulary, in sums of float32 over logits of float16."""
        with rtx_engine_builder() as engine_builder:
            built = engine_builder.build_engine(
                graph,
                profiles(EngineLimits(4, 12, 10)),
                candidates=self.MODEL.vocabulary_size // 2,
                configure=building_for(architecture),
            )
        assert built.plan.nbytes > self.least_bytes

    @property
    def least_bytes(self) -> int:
        """Bytes of the matrices alone."""
        width = self.MODEL.heads * self.MODEL.head_dim
        # Each block has matrices of 12 times the squared width: attention 4, the two layers 8.
        return 2 * self.MODEL.layers * 12 * width**2
