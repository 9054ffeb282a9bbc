"""Our builder code with NVIDIA's own parser and builder, which need no GPU to build.

The bindings of TensorRT for RTX stand in for `tensorrt`: the same names, parser and type rules;
engines of its own, told their GPU instead of finding it, and a timing cache that holds nothing.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from containers.jobs.report import CompileError
from containers.tensorrt.compile.job import Hyperparameters
from containers.tensorrt.compile.profiles import EngineBuildError, profiles
from containers.tensorrt.compile.stages import build_engines
from containers.tensorrt.engine_metadata import (
    EngineLimits,
    EngineMetadata,
    Gpu,
    graph_digest,
    read_metadata,
)
from containers.tensorrt.model_directory import ModelConfig, read_config
from tests.containers.tensorrt.compile.jobs import SAMPLE, keep_one_layer
from tests.containers.tensorrt.rtx_builder import building_for, tensors
from tests.support.compile_jobs import ROOT
from tests.support.groups import load

rtx = load("tensorrt_rtx_bindings", group="builder")

pytestmark = [
    pytest.mark.builder,
    pytest.mark.filterwarnings("ignore:.*Timing cache operations are no-ops:DeprecationWarning"),
]

# The GPUs of ml.g4dn, ml.p4d, ml.g5 and ml.g6.
ARCHITECTURES = ("SM75", "SM80", "SM86", "SM89")
LIMITS = EngineLimits(max_batch_size=4, max_input_tokens=12, max_new_tokens=10)


def contract(model, float_type):
    """The inputs and outputs that GPT-2's export documents, without the logits' one position."""
    cache = (float_type, (-1, model.heads, -1, model.head_dim))
    parts = [f"{layer}.{part}" for layer in range(model.layers) for part in ("key", "value")]
    tokens = dict.fromkeys(
        ("input_ids", "attention_mask", "position_ids"), (rtx.DataType.INT64, (-1, -1))
    )
    return (
        tokens | {f"past_key_values.{part}": cache for part in parts},
        {"logits": (float_type, (-1, -1, model.vocabulary_size))}
        | {f"present.{part}": cache for part in parts},
    )


def test_licence_keeps_nvidias_builder_out_of_images():
    lists = [ROOT / "requirements.txt", *ROOT.glob("containers/*/requirements*")]
    recipes = [*lists, *ROOT.glob("containers/*/Dockerfile")]
    assert len(recipes) > len(lists) > 1
    assert [path for path in recipes if "tensorrt-rtx" in path.read_text()] == []


class TestCommittedSample:
    """The float32 graph, whose weights lie in the checkpoint beside it."""

    def test_parser_sees_the_contract(self, engine_builder):
        network = engine_builder.ParsedGraph(SAMPLE / "model.onnx").network
        inputs, outputs = contract(read_config(SAMPLE), rtx.DataType.FLOAT)
        assert tensors(network, "input") == inputs
        assert tensors(network, "output") == outputs

    @pytest.mark.parametrize("architecture", ARCHITECTURES[1:])
    def test_engine_is_built(self, engine_builder, architecture):
        with building_for(architecture):
            built = engine_builder.build_engine(
                SAMPLE / "model.onnx", profiles(LIMITS), candidates=128
            )
        # The engine holds the weights, the tied embedding at least once.
        assert built.plan.nbytes > (SAMPLE / "model.safetensors").stat().st_size
        assert len(bytes(built.plan)) == built.plan.nbytes
        assert built.timing_cache

    def test_candidates_have_their_types_and_shapes(self, engine_builder):
        network = engine_builder.ParsedGraph(SAMPLE / "model.onnx").network
        inputs, outputs = tensors(network, "input"), tensors(network, "output")
        engine_builder._add_candidates(network, 128)
        assert tensors(network, "input") == {
            **inputs,
            "temperatures": (rtx.DataType.FLOAT, (-1, 1, 1)),
        }
        # The parser does not see that the logits are of one position.
        assert tensors(network, "output") == {
            **outputs,
            "candidate_logits": (rtx.DataType.FLOAT, (-1, -1, 128)),
            "candidate_tokens": (rtx.DataType.INT32, (-1, -1, 128)),
            "total_weights": (rtx.DataType.FLOAT, (-1, -1, 1)),
        }

    def test_a_graph_without_logits_has_no_candidates(self, engine_builder):
        network = engine_builder.ParsedGraph(SAMPLE / "model.onnx").network
        network.unmark_output(
            next(
                tensor
                for tensor in map(network.get_output, range(network.num_outputs))
                if tensor.name == "logits"
            )
        )
        with pytest.raises(EngineBuildError, match=r"it has no output logits$"):
            engine_builder._add_candidates(network, 128)

    def test_network_is_strongly_typed(self, engine_builder):
        parsed = engine_builder.ParsedGraph(SAMPLE / "model.onnx")
        assert parsed.network.get_flag(rtx.NetworkDefinitionCreationFlag.STRONGLY_TYPED)

    def test_timing_cache_of_another_gpu_is_not_used(self, engine_builder):
        """A configuration that answers as documented: this builder's cache holds nothing."""
        given = []

        class Config:
            def __init__(self, accepted):
                self.accepted = accepted

            def create_timing_cache(self, content):
                given.append(content)
                return content

            def set_timing_cache(self, cache, ignore_mismatch):
                assert not ignore_mismatch
                return self.accepted or not cache

        engine_builder._use_timing_cache(Config(accepted=True), b"kept")
        assert given == [b"kept"]
        engine_builder._use_timing_cache(Config(accepted=False), b"foreign")
        assert given == [b"kept", b"foreign", b""]

    def test_float32_is_refused_on_turing(self, engine_builder):
        refusal = (
            r"TensorRT cannot build an engine of model\.onnx: .*for Turing \(SM75\): FP32 GEMM is "
            "not supported"
        )
        with building_for("SM75"), pytest.raises(EngineBuildError, match=refusal):
            engine_builder.build_engine(SAMPLE / "model.onnx", profiles(LIMITS))

    def test_missing_weights_are_reported(self, engine_builder, tmp_path):
        graph = Path(shutil.copy(SAMPLE / "model.onnx", tmp_path))
        with pytest.raises(
            EngineBuildError,
            match=rf"TensorRT cannot read model\.onnx: .*Failed to open file: {tmp_path}"
            "/model.safetensors",
        ):
            engine_builder.build_engine(graph, profiles(LIMITS))

    def test_every_unknown_operator_is_reported(self, engine_builder, tmp_path):
        shutil.copy(SAMPLE / "model.safetensors", tmp_path)
        graph = tmp_path / "model.onnx"
        # As long as the name that it replaces: the file's lengths still hold.
        content = (SAMPLE / "model.onnx").read_bytes()
        assert b"Softmax" in content
        graph.write_bytes(content.replace(b"Softmax", b"Softmix"))
        with pytest.raises(EngineBuildError) as error:
            engine_builder.build_engine(graph, profiles(LIMITS))
        # One for each layer's attention.
        findings = str(error.value).count(" (Softmix): ")
        assert findings == read_config(SAMPLE).layers
        assert "node_Softmix_" in str(error.value)
        assert "Plugin not found" in str(error.value)

    @pytest.mark.parametrize("content", [b"", b"no graph"], ids=repr)
    def test_what_is_no_graph_is_reported(self, engine_builder, tmp_path, content):
        graph = tmp_path / "model.onnx"
        graph.write_bytes(content)
        with pytest.raises(EngineBuildError, match=r"TensorRT cannot .*model\.onnx"):
            engine_builder.build_engine(graph, profiles(LIMITS))

    def test_a_failed_build_leaves_no_builder_behind(self, tmp_path):
        """TensorRT calls the log with a lock held, which the deletion of a builder waits for."""
        graph = tmp_path / "model.onnx"
        graph.write_bytes(b"no graph")
        program = BUILDS_AND_COLLECTS.format(graph=str(graph))
        ended = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, timeout=100
        )
        assert (ended.returncode, ended.stdout) == (0, "collected in the log\n"), ended.stderr


# Keeps the error of a build in a cycle, which only the collection of garbage takes apart.
BUILDS_AND_COLLECTS = """
import faulthandler, gc, sys
import tensorrt_rtx_bindings
sys.modules["tensorrt"] = tensorrt_rtx_bindings
faulthandler.dump_traceback_later(30, exit=True)
from pathlib import Path
from containers.tensorrt.compile import engine_builder

gc.disable()

def fail():
    try:
        engine_builder.build_engine(Path({graph!r}), ())
    except engine_builder.EngineBuildError as error:
        error.itself = error

class Collecting(engine_builder.MessageLog):
    def log(self, severity, message):
        if gc.collect():
            print("collected in the log")

fail()
# A second log is something that TensorRT warns of, while it makes the builder.
other = engine_builder.MessageLog()
first = tensorrt_rtx_bindings.Builder(other)
log = Collecting()
tensorrt_rtx_bindings.Builder(log)
"""


@pytest.mark.usefixtures("engine_builder")
def test_a_refusal_of_the_builder_is_the_jobs_reason(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(CompileError, match=r"^TensorRT cannot read model\.onnx: "):
        build_engines(
            tmp_path,
            {"model.engine": ("model.onnx", profiles(LIMITS))},
            [tmp_path / "model.onnx"],
            Hyperparameters(4, 12, 10, target="sm86"),
            read_config(SAMPLE),
            Gpu("NVIDIA A10G", "sm86"),
        )


@pytest.mark.torch
# transformers and torch deprecate each other's and their own names in every release.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
class TestHalfPrecision:
    """Exports a random model as a float16 graph, whose types become the types of the engine."""

    MODEL = ModelConfig(
        layers=2,
        heads=3,
        head_dim=24,
        max_positions=128,
        vocabulary_size=97,
        eos_token_ids=frozenset({0}),
    )

    @pytest.fixture(scope="class")
    def graph(self, tmp_path_factory):
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

    def test_parser_sees_the_contract(self, engine_builder, graph):
        network = engine_builder.ParsedGraph(graph).network
        inputs, outputs = contract(self.MODEL, rtx.DataType.HALF)
        assert tensors(network, "input") == inputs
        assert tensors(network, "output") == outputs

    def test_no_layer_puts_out_float32(self, engine_builder, graph):
        parsed = engine_builder.ParsedGraph(graph)
        layers = [parsed.network.get_layer(index) for index in range(parsed.network.num_layers)]
        types = {layer.get_output(i).dtype for layer in layers for i in range(layer.num_outputs)}
        assert rtx.DataType.HALF in types
        assert rtx.DataType.FLOAT not in types

    @pytest.mark.parametrize("architecture", ARCHITECTURES)
    def test_an_engine_is_built(self, engine_builder, graph, architecture):
        """It finds half the vocabulary, in sums of float32 over logits of float16."""
        with building_for(architecture):
            built = engine_builder.build_engine(
                graph, profiles(LIMITS), candidates=self.MODEL.vocabulary_size // 2
            )
        # Each block has matrices of 12 times the squared width: attention 4, the two layers 8.
        width = self.MODEL.heads * self.MODEL.head_dim
        assert built.plan.nbytes > 2 * self.MODEL.layers * 12 * width**2


# A module `tensorrt` whose builder is told its GPU, which the real one finds; and CUDA's answer.
TENSORRT = """
import warnings

import tensorrt_rtx_bindings as rtx
from tensorrt_rtx_bindings import *

__version__ = rtx.__version__
warnings.filterwarnings("ignore", message=".*Timing cache operations are no-ops")


class Builder(rtx.Builder):
    def create_builder_config(self):
        config = super().create_builder_config()
        config.num_compute_capabilities = 1
        config.set_compute_capability(rtx.ComputeCapability.SM86, 0)
        return config
"""
CUDA = """
import enum, types

class cudaError_t(enum.IntEnum):
    cudaSuccess = 0

def cudaGetDeviceProperties(device):
    gpu = types.SimpleNamespace(name=b"NVIDIA A10G" + bytes(9), major=8, minor=6)
    return cudaError_t.cudaSuccess, gpu
"""


@pytest.mark.torch
def test_the_whole_command_makes_an_engine_and_its_metadata(job):
    """Only the GPU itself is made up."""
    for package in ("torch", "transformers", "onnxscript"):
        load(package, group="torch")
    keep_one_layer(job.weights)
    job.set_hyperparameters(target="sm86", keep_graph="true")
    job.stand_in("tensorrt", TENSORRT)
    job.stand_in("cuda.bindings.runtime", CUDA)
    assert job.run() == 0, job.failure

    assert job.model_files == [
        "config.json",
        "engine.json",
        "generation_config.json",
        "model.engine",
        "model.onnx",
        "timing.cache",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    metadata = read_metadata(job.model)
    config = read_config(job.weights)
    assert metadata == EngineMetadata(
        tensorrt_version=rtx.__version__,
        compute_capability="sm86",
        gpu_name="NVIDIA A10G",
        graph_sha256=graph_digest(job.model / "model.onnx", []),
        precision="fp16",
        max_batch_size=4,
        max_input_tokens=20,
        max_new_tokens=12,
        layers=config.layers,
        heads=config.heads,
        head_dim=config.head_dim,
        vocabulary_size=config.vocabulary_size,
    )
    [finished] = [line for line in job.named("stage_finished") if line["stage"] == "build_engine"]
    engine_bytes = (job.model / "model.engine").stat().st_size
    # Weights of half precision, as the checkpoint's are.
    assert engine_bytes > (job.weights / "model.safetensors").stat().st_size
    assert finished["engine_bytes"] == engine_bytes
