"""Our builder code with NVIDIA's own parser and builder, which need no GPU to build.

The bindings of TensorRT for RTX stand in for `tensorrt`: the same names, parser and type rules;
engines of its own, told their GPU instead of finding it, and a timing cache that holds nothing.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from containers.tensorrt.compile.profiles import EngineBuildError, EngineLimits, profiles
from containers.tensorrt.model_directory import read_config
from tests.containers.tensorrt.compile.jobs import SAMPLE, keep_one_layer
from tests.containers.tensorrt.rtx_builder import building_for, rtx_engine_builder
from tests.support.compile_jobs import ROOT, Job
from tests.support.groups import load

rtx = load("tensorrt_rtx_bindings", group="builder")

pytestmark = [
    pytest.mark.builder,
    pytest.mark.filterwarnings("ignore:.*Timing cache operations are no-ops:DeprecationWarning"),
]

BATCH, PROMPT, NEW = 4, 12, 10


@pytest.fixture
def engine_builder() -> Iterator[ModuleType]:
    with rtx_engine_builder() as module:
        yield module


LIMITS = EngineLimits(max_batch_size=BATCH, max_input_tokens=PROMPT, max_new_tokens=NEW)


class TestCommittedSample:
    """The float32 graph, whose weights lie in the checkpoint beside it."""

    def test_engine_is_built(self, engine_builder: ModuleType) -> None:
        numbers: list[int] = []

        def configure(config: Any) -> None:
            building_for("SM86")(config)
            numbers.append(config.num_optimization_profiles)

        built = engine_builder.build_engine(
            SAMPLE / "model.onnx", profiles(LIMITS), configure=configure
        )

        assert numbers == [2]
        # The engine holds the weights, the tied embedding at least once.
        assert built.plan.nbytes > (SAMPLE / "model.safetensors").stat().st_size
        assert len(bytes(built.plan)) == built.plan.nbytes
        assert built.timing_cache

    @pytest.mark.parametrize("architecture", ["SM80", "SM86", "SM89"])
    def test_an_engine_finds_candidates(
        self, engine_builder: ModuleType, architecture: str
    ) -> None:
        built = engine_builder.build_engine(
            SAMPLE / "model.onnx",
            profiles(LIMITS),
            candidates=128,
            configure=building_for(architecture),
        )
        assert built.plan.nbytes > (SAMPLE / "model.safetensors").stat().st_size

    def test_candidates_have_their_types_and_shapes(self, engine_builder: ModuleType) -> None:
        network = engine_builder.ParsedGraph(SAMPLE / "model.onnx").network
        before = network.num_inputs, network.num_outputs
        engine_builder._add_candidates(network, 128)
        inputs, outputs = (
            {tensor.name: (tensor.dtype, tuple(tensor.shape)) for tensor in tensors}
            for tensors in (
                [network.get_input(index) for index in range(before[0], network.num_inputs)],
                [network.get_output(index) for index in range(before[1], network.num_outputs)],
            )
        )
        assert inputs == {"temperatures": (rtx.DataType.FLOAT, (-1, 1, 1))}
        # The parser does not see that the logits are of one position.
        assert outputs == {
            "candidate_logits": (rtx.DataType.FLOAT, (-1, -1, 128)),
            "candidate_tokens": (rtx.DataType.INT32, (-1, -1, 128)),
            "total_weights": (rtx.DataType.FLOAT, (-1, -1, 1)),
        }

    def test_a_graph_without_logits_has_no_candidates(self, engine_builder: ModuleType) -> None:
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

    def test_network_is_strongly_typed(self, engine_builder: ModuleType) -> None:
        parsed = engine_builder.ParsedGraph(SAMPLE / "model.onnx")
        assert parsed.network.get_flag(rtx.NetworkDefinitionCreationFlag.STRONGLY_TYPED)

    def test_timing_cache_of_another_gpu_is_not_used(self, engine_builder: ModuleType) -> None:
        """A configuration that answers as documented: this builder's cache holds nothing."""
        given: list[bytes] = []

        class Config:
            def __init__(self, accepted: bool) -> None:
                self.accepted = accepted

            def create_timing_cache(self, content: bytes) -> bytes:
                given.append(content)
                return content

            def set_timing_cache(self, cache: bytes, ignore_mismatch: bool) -> bool:
                assert not ignore_mismatch
                return self.accepted or not cache

        engine_builder._use_timing_cache(Config(accepted=True), b"kept")
        assert given == [b"kept"]
        engine_builder._use_timing_cache(Config(accepted=False), b"foreign")
        assert given == [b"kept", b"foreign", b""]

    def test_float32_is_refused_on_turing(self, engine_builder: ModuleType) -> None:
        with pytest.raises(
            EngineBuildError,
            match=r"TensorRT cannot build an engine of model\.onnx: .*for Turing \(SM75\): FP32 "
            "GEMM is not supported",
        ):
            engine_builder.build_engine(
                SAMPLE / "model.onnx", profiles(LIMITS), configure=building_for("SM75")
            )

    def test_missing_weights_are_reported(self, engine_builder: ModuleType, tmp_path: Path) -> None:
        graph = Path(shutil.copy(SAMPLE / "model.onnx", tmp_path))
        with pytest.raises(
            EngineBuildError,
            match=rf"TensorRT cannot read model\.onnx: .*Failed to open file: {tmp_path}"
            "/model.safetensors",
        ):
            engine_builder.build_engine(graph, profiles(LIMITS))

    def test_every_unknown_operator_is_reported(
        self, engine_builder: ModuleType, tmp_path: Path
    ) -> None:
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

    @pytest.mark.parametrize("content", [b"", b"no graph", b"\x08\x08"], ids=repr)
    def test_what_is_no_graph_is_reported(
        self, engine_builder: ModuleType, tmp_path: Path, content: bytes
    ) -> None:
        graph = tmp_path / "model.onnx"
        graph.write_bytes(content)
        with pytest.raises(EngineBuildError, match=r"TensorRT cannot .*model\.onnx"):
            engine_builder.build_engine(graph, profiles(LIMITS))

    def test_a_failed_build_leaves_no_builder_behind(self, tmp_path: Path) -> None:
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


# A module `tensorrt` whose builder is told its GPU, which the real one finds; and CUDA's answer.
TENSORRT_FOR = """
import warnings

import tensorrt_rtx_bindings as rtx
from tensorrt_rtx_bindings import *

__version__ = rtx.__version__
warnings.filterwarnings("ignore", message=".*Timing cache operations are no-ops")


class Builder(rtx.Builder):
    def create_builder_config(self):
        config = super().create_builder_config()
        config.num_compute_capabilities = 1
        config.set_compute_capability(rtx.ComputeCapability.{architecture}, 0)
        return config
"""
CUDA_WITH = """
import enum, types

class cudaError_t(enum.IntEnum):
    cudaSuccess = 0

def cudaGetDeviceProperties(device):
    gpu = types.SimpleNamespace(name=b"NVIDIA {name}" + bytes(9), major={major}, minor={minor})
    return cudaError_t.cudaSuccess, gpu
"""


@pytest.mark.torch
class TestCompileForAGpu:
    """The whole command; only the GPU itself is made up."""

    @pytest.fixture(autouse=True)
    def _packages(self) -> None:
        for package in ("torch", "transformers", "onnxscript"):
            load(package, group="torch")

    @pytest.mark.parametrize(
        ("architecture", "name", "keep_graph"), [("SM86", "A10G", "true"), ("SM75", "T4", None)]
    )
    def test_engine_and_metadata(
        self, job: Job, architecture: str, name: str, keep_graph: str | None
    ) -> None:
        from containers.tensorrt.engine_metadata import EngineMetadata, graph_digest, read_metadata

        keep_one_layer(job.weights)
        target = architecture.lower()
        job.set_hyperparameters(target=target, keep_graph=keep_graph)
        job.stand_in("tensorrt", TENSORRT_FOR.format(architecture=architecture))
        job.stand_in(
            "cuda.bindings.runtime",
            CUDA_WITH.format(name=name, major=architecture[2], minor=architecture[3]),
        )
        assert job.run() == 0, job.failure

        files = ["config.json", "engine.json", "generation_config.json", "model.engine"]
        files += ["model.onnx"] if keep_graph else []
        assert job.model_files == [
            *files,
            "timing.cache",
            "tokenizer.json",
            "tokenizer_config.json",
        ]
        metadata = read_metadata(job.model)
        config = read_config(job.weights)
        digest = metadata.graph_sha256
        assert metadata == EngineMetadata(
            tensorrt_version=rtx.__version__,
            compute_capability=target,
            gpu_name=f"NVIDIA {name}",
            graph_sha256=digest,
            precision="fp16",
            max_batch_size=4,
            max_input_tokens=20,
            max_new_tokens=12,
            layers=config.layers,
            heads=config.heads,
            head_dim=config.head_dim,
            vocabulary_size=config.vocabulary_size,
        )
        if keep_graph:
            assert digest == graph_digest(job.model / "model.onnx", [])
        [finished] = [
            line for line in job.named("stage_finished") if line["stage"] == "build_engine"
        ]
        engine_bytes = (job.model / "model.engine").stat().st_size
        # Weights of half precision, as the checkpoint's are.
        assert engine_bytes > (job.weights / "model.safetensors").stat().st_size
        assert finished["engine_bytes"] == engine_bytes

    def test_refusal_of_the_builder_is_the_reason(self, job: Job) -> None:
        """A machine that is told sm75 and a graph of float32: what the builder says is shown."""
        keep_one_layer(job.weights)
        job.set_hyperparameters(target="sm75")
        job.stand_in("tensorrt", TENSORRT_FOR.format(architecture="SM75"))
        job.stand_in("cuda.bindings.runtime", CUDA_WITH.format(name="T4", major=7, minor=5))
        # The precision that a target takes is ours to say; here it is said wrong.
        (job.modules / "sitecustomize.py").write_text(
            f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
            "from containers.tensorrt.compile.job import Hyperparameters\n"
            "Hyperparameters.precision = 'fp32'\n"
        )
        assert job.run() == 1
        assert job.failure.startswith("TensorRT cannot build an engine of model.onnx: ")
        assert "for Turing (SM75): FP32 GEMM is not supported" in job.failure
        assert job.model_files == []
