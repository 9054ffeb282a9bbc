"""Our builder code with NVIDIA's own parser and builder, which need no GPU to build.

See `rtx_builder` for what stands in for `tensorrt`; running an engine takes a GPU.
"""

import re
import shutil
import subprocess
import sys

import pytest

from containers.encoders.manifest import read_manifest
from containers.jobs.report import CompileError
from containers.tensorrt.compile.job import Hyperparameters, Job
from containers.tensorrt.compile.profiles import EngineBuildError, profiles
from containers.tensorrt.compile.profiles import encoder_profiles as bert_profiles
from containers.tensorrt.compile.stages import build_engines
from containers.tensorrt.engine_metadata import (
    EngineLimits,
    EngineMetadata,
    Gpu,
    graph_digest,
    read_metadata,
)
from containers.tensorrt.model_directory import read_config
from containers.triton.engine_metadata import decoder_profiles, encoder_profiles
from containers.triton.model_directory import check_files
from tests.containers.tensorrt.compile.jobs import SAMPLE, keep_one_layer
from tests.containers.tensorrt.rtx_builder import building_for, output_types, tensors
from tests.containers.tensorrt.sample_model import GPT2
from tests.containers.tensorrt.t5_models import VOCABULARY
from tests.containers.triton.checkpoints import word_tokenizer
from tests.support.compile_jobs import ROOT
from tests.support.groups import TORCH_MARKS, load

rtx = load("tensorrt_rtx_bindings", group="builder")

pytestmark = [
    pytest.mark.builder,
    pytest.mark.filterwarnings("ignore:.*Timing cache operations are no-ops:DeprecationWarning"),
]

LIMITS = EngineLimits(max_batch_size=4, max_input_tokens=12, max_new_tokens=10)
INT64, FLOAT, HALF = rtx.DataType.INT64, rtx.DataType.FLOAT, rtx.DataType.HALF
BERT = ROOT / "samples" / "bert-qa" / "model"


def cache(prefix, sizes, kind):
    parts = [f"{layer}.{part}" for layer in range(sizes.layers) for part in ("key", "value")]
    return {f"{prefix}.{part}": (kind, (-1, sizes.heads, -1, sizes.head_dim)) for part in parts}


def tokens(*names):
    return dict.fromkeys(names, (INT64, (-1, -1)))


def with_torch(test):
    for mark in TORCH_MARKS:
        test = mark(test)
    return test


def test_licence_keeps_nvidias_builder_out_of_images():
    lists = [ROOT / "requirements.txt", *ROOT.glob("containers/*/requirements*")]
    recipes = [*lists, *ROOT.glob("containers/*/Dockerfile")]
    assert len(recipes) > len(lists) > 1
    assert [path for path in recipes if "tensorrt-rtx" in path.read_text()] == []


def test_parser_sees_the_contract_of_a_step_graph(engine_builder):
    """What GPT-2's export documents, in float32, and what our layers add to it."""
    parsed, model = engine_builder.ParsedGraph(SAMPLE / "model.onnx"), read_config(SAMPLE)
    network = parsed.network
    assert network.get_flag(rtx.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
    inputs, outputs = step_contract(model, FLOAT)
    assert (tensors(network, "input"), tensors(network, "output")) == (inputs, outputs)
    engine_builder._add_candidates(network, 128)
    assert tensors(network, "input") == inputs | {"temperatures": (FLOAT, (-1, 1, 1))}
    assert tensors(network, "output") == outputs | {
        "candidate_logits": (FLOAT, (-1, -1, 128)),
        "candidate_tokens": (rtx.DataType.INT32, (-1, -1, 128)),
        "total_weights": (FLOAT, (-1, -1, 1)),
    }
    found = map(network.get_output, range(network.num_outputs))
    network.unmark_output(next(tensor for tensor in found if tensor.name == "logits"))
    with pytest.raises(EngineBuildError, match=r"it has no output logits$"):
        engine_builder._add_candidates(network, 128)


def step_contract(model, kind):
    # The parser does not see that the logits are of one position.
    logits = {"logits": (kind, (-1, -1, model.vocabulary_size))}
    return (
        tokens("input_ids", "attention_mask", "position_ids")
        | cache("past_key_values", model, kind),
        logits | cache("present", model, kind),
    )


@with_torch
def test_parser_sees_the_contracts_of_float16(engine_builder, half_gpt2_graph, half_flan_graphs):
    parsed = engine_builder.ParsedGraph(half_gpt2_graph)
    found = tensors(parsed.network, "input"), tensors(parsed.network, "output")
    assert found == step_contract(GPT2, HALF)
    # Without the sums of the candidates, no layer puts out float32.
    types = output_types(parsed.network)
    assert HALF in types
    assert FLOAT not in types

    sizes = half_flan_graphs.sizes
    cross = cache("cross_key_values", sizes, HALF)
    contracts = {
        half_flan_graphs.encoder: (tokens("input_ids", "attention_mask"), cross),
        half_flan_graphs.decoder: (
            tokens("input_ids", "encoder_attention_mask")
            | cache("past_key_values", sizes, HALF)
            | cross,
            {"logits": (HALF, (-1, -1, VOCABULARY))} | cache("present", sizes, HALF),
        ),
    }
    for graph, contract in contracts.items():
        parsed = engine_builder.ParsedGraph(graph)
        assert (tensors(parsed.network, "input"), tensors(parsed.network, "output")) == contract
        # Norms and the residual stream are of float32.
        assert output_types(parsed.network, rtx.LayerType.MATRIX_MULTIPLY) == {HALF}


# The GPUs of ml.g4dn, ml.p4d, ml.g5 and ml.g6.
@pytest.mark.parametrize("architecture", ["SM80", "SM86", "SM89"])
def test_engine_of_the_sample_is_built(engine_builder, architecture):
    with building_for(architecture):
        built = engine_builder.build_engine(SAMPLE / "model.onnx", profiles(LIMITS), candidates=128)
    # The engine holds the weights, the tied embedding at least once.
    assert built.plan.nbytes > (SAMPLE / "model.safetensors").stat().st_size
    assert len(bytes(built.plan)) == built.plan.nbytes
    assert built.timing_cache


@with_torch
@pytest.mark.parametrize("architecture", ["SM75", "SM80", "SM86", "SM89"])
def test_engine_of_a_float16_graph_is_built(engine_builder, half_gpt2_graph, architecture):
    """It finds half the vocabulary, in sums of float32 over logits of float16."""
    with building_for(architecture):
        built = engine_builder.build_engine(
            half_gpt2_graph, profiles(LIMITS), candidates=GPT2.vocabulary_size // 2
        )
    # Each block has matrices of 12 times the squared width: attention 4, the two layers 8.
    assert built.plan.nbytes > 2 * GPT2.layers * 12 * (GPT2.heads * GPT2.head_dim) ** 2


@with_torch
@pytest.mark.parametrize("architecture", ["SM75", "SM86"])
def test_engines_of_t5_are_built(engine_builder, half_flan_graphs, architecture):
    limits = EngineLimits(max_batch_size=8, max_input_tokens=128, max_new_tokens=64)
    with building_for(architecture):
        for graph, sizes in (
            (half_flan_graphs.encoder, encoder_profiles(limits)),
            (half_flan_graphs.decoder, decoder_profiles(limits)),
        ):
            # Its weights, the embedding or the head among them, are in it.
            assert engine_builder.build_engine(graph, sizes).plan.nbytes > 2 * VOCABULARY * 40


def test_engine_of_bert_has_a_profile_for_each_bucket(engine_builder, tmp_path):
    manifest = read_manifest(BERT)
    sizes = bert_profiles(manifest.inputs, 4, manifest.buckets)
    parsed = engine_builder.ParsedGraph(BERT / "model.onnx")
    assert set(tensors(parsed.network, "output")) == {"start_logits", "end_logits"}
    with building_for("SM86"):
        assert engine_builder.build_engine(BERT / "model.onnx", sizes).plan.nbytes > 0


def test_timing_cache_of_another_gpu_is_not_used(engine_builder):
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


class TestRefusals:
    @pytest.fixture
    def refusal(self, engine_builder, tmp_path):
        def of(content):
            (tmp_path / "model.onnx").write_bytes(content)
            with pytest.raises(EngineBuildError) as error:
                engine_builder.build_engine(tmp_path / "model.onnx", profiles(LIMITS))
            return str(error.value)

        return of

    def test_float32_on_turing(self, engine_builder):
        refusal = (
            r"TensorRT cannot build an engine of model\.onnx: .*for Turing \(SM75\): FP32 GEMM is "
            "not supported"
        )
        with building_for("SM75"), pytest.raises(EngineBuildError, match=refusal):
            engine_builder.build_engine(SAMPLE / "model.onnx", profiles(LIMITS))

    def test_missing_weights(self, refusal, tmp_path):
        message = refusal((SAMPLE / "model.onnx").read_bytes())
        assert message.startswith("TensorRT cannot read model.onnx: ")
        assert f"Failed to open file: {tmp_path}/model.safetensors" in message

    def test_every_unknown_operator(self, refusal, tmp_path):
        shutil.copy(SAMPLE / "model.safetensors", tmp_path)
        # As long as the name that it replaces: the file's lengths still hold.
        content = (SAMPLE / "model.onnx").read_bytes()
        assert b"Softmax" in content
        message = refusal(content.replace(b"Softmax", b"Softmix"))
        # One for each layer's attention.
        assert message.count(" (Softmix): ") == read_config(SAMPLE).layers
        assert "node_Softmix_" in message
        assert "Plugin not found" in message

    def test_what_is_no_graph(self, refusal, tmp_path):
        assert re.match(r"TensorRT cannot .*model\.onnx", refusal(b""))
        assert refusal(b"no graph").startswith("TensorRT cannot read model.onnx: ")
        # It is the job's reason.
        with pytest.raises(CompileError, match=r"^TensorRT cannot read model\.onnx: "):
            build_engines(
                tmp_path,
                {"model.engine": ("model.onnx", profiles(LIMITS))},
                [tmp_path / "model.onnx"],
                Hyperparameters(4, 12, 10, target="sm86"),
                read_config(SAMPLE),
                Gpu("NVIDIA A10G", "sm86"),
            )

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


def metadata_of(graphs, gpu, limits, sizes):
    return EngineMetadata.of(
        limits,
        sizes,
        tensorrt_version=rtx.__version__,
        compute_capability=gpu.compute_capability,
        gpu_name=gpu.name,
        graph_sha256=graph_digest(graphs[0], graphs[1:]),
        precision="fp16",
    )


# A module `tensorrt` whose builder is told its GPU, which the real one finds; and CUDA's answer.
TENSORRT = """
import warnings
from tensorrt_rtx_bindings import *
from tensorrt_rtx_bindings import __version__
from tests.containers.tensorrt.rtx_builder import building_for

warnings.filterwarnings("ignore", message=".*Timing cache operations are no-ops")
building = building_for("SM86")
building.__enter__()
"""
CUDA = """
from tests.containers.tensorrt.runtimes.cuda_standin import CudaStandIn, cudaError_t

cudaGetDeviceProperties = CudaStandIn().cudaGetDeviceProperties
"""


@with_torch
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
    gpu, limits = Gpu("NVIDIA A10G", "sm86"), EngineLimits(4, 20, 12)
    expected = metadata_of([job.model / "model.onnx"], gpu, limits, read_config(job.weights))
    assert read_metadata(job.model) == expected
    [finished] = [line for line in job.named("stage_finished") if line["stage"] == "build_engine"]
    engine_bytes = (job.model / "model.engine").stat().st_size
    # Weights of half precision, as the checkpoint's are.
    assert engine_bytes > (job.weights / "model.safetensors").stat().st_size
    assert finished["engine_bytes"] == engine_bytes


@with_torch
@pytest.mark.usefixtures("engine_builder")
def test_compiling_t5_for_a_gpu(half_flan_graphs, tmp_path, monkeypatch):
    """The stages of a job for the Triton container, with the graphs that are here already."""
    from containers.triton.compile import model as torch_model
    from containers.triton.compile.checkpoint import read_checkpoint
    from containers.triton.compile.worker import compile_checkpoint

    checkpoint_dir, scratch = tmp_path / "checkpoint", tmp_path / "scratch"
    scratch.mkdir()
    shutil.copytree(
        half_flan_graphs.encoder.parent, checkpoint_dir, ignore=shutil.ignore_patterns("*.onnx")
    )
    word_tokenizer().save(str(checkpoint_dir / "tokenizer.json"))
    checkpoint, problems = read_checkpoint(checkpoint_dir, None)
    assert problems == []
    graphs = (half_flan_graphs.decoder, half_flan_graphs.encoder)

    def export_graphs(given, directory, precision):
        assert precision == "fp16"
        for graph in graphs:
            shutil.copyfile(graph, directory / graph.name)

    monkeypatch.setattr(torch_model, "export_graphs", export_graphs)
    asked, gpu = Hyperparameters(8, 128, 64, target="sm75"), Gpu("Tesla T4", "sm75")
    with building_for("SM75"):
        compile_checkpoint(Job(asked, checkpoint), gpu, scratch)

    files = {"config.json", "generation_config.json", "tokenizer.json", "engine.json"}
    files |= {"encoder.engine", "decoder.engine", "timing.cache"}
    assert {path.name for path in scratch.iterdir()} == files
    assert check_files(scratch)
    assert read_metadata(scratch) == metadata_of(graphs, gpu, asked, half_flan_graphs.sizes)
