"""NVIDIA's own parser and builder make engines of T5's graphs; running one takes a GPU.

The builder is TensorRT for RTX: its parser and its type rules are TensorRT's, its engines are not.
"""

import shutil

import pytest

from containers.tensorrt.engine_metadata import (
    EngineLimits,
    EngineMetadata,
    Gpu,
    graph_digest,
    read_metadata,
)
from containers.triton.engine_metadata import decoder_profiles, encoder_profiles
from containers.triton.model_directory import check_files
from tests.containers.tensorrt.rtx_builder import building_for, tensors
from tests.containers.tensorrt.t5_models import HEAD_DIM, HEADS, VOCABULARY
from tests.containers.triton.checkpoints import word_tokenizer
from tests.support.groups import TORCH_MARKS, load

trt = load("tensorrt_rtx_bindings", group="builder")
load("torch", group="torch")
load("transformers", group="torch")
load("onnxscript", group="torch")

pytestmark = [
    pytest.mark.builder,
    *TORCH_MARKS,
    pytest.mark.filterwarnings("ignore:.*Timing cache operations are no-ops:DeprecationWarning"),
]

# The GPUs of ml.g4dn and ml.g5; test_engine_builder.py has all.
ARCHITECTURES = ("SM75", "SM86")
LIMITS = EngineLimits(max_batch_size=8, max_input_tokens=128, max_new_tokens=64)


def built(engine_builder, graph, architecture):
    """Builds an engine with the container's profiles; returns its size in bytes."""
    profiles = {"encoder.onnx": encoder_profiles, "decoder.onnx": decoder_profiles}[graph.name]
    with building_for(architecture):
        return engine_builder.build_engine(graph, profiles(LIMITS)).plan.nbytes


def cache(prefix, layers, kind):
    parts = [f"{layer}.{part}" for layer in range(layers) for part in ("key", "value")]
    return {f"{prefix}.{part}": (kind, (-1, HEADS, -1, HEAD_DIM)) for part in parts}


class TestHalfPrecision:
    @pytest.fixture(params=["encoder", "decoder"])
    def graph(self, request, half_flan_graphs):
        return getattr(half_flan_graphs, request.param)

    @pytest.mark.parametrize("architecture", ARCHITECTURES)
    def test_engine_is_built(self, engine_builder, graph, architecture):
        # Its weights, the embedding or the head among them, are in it.
        assert built(engine_builder, graph, architecture) > 2 * VOCABULARY * 40

    def test_no_matrix_product_is_of_float32(self, engine_builder, graph):
        parsed = engine_builder.ParsedGraph(graph)
        layers = [parsed.network.get_layer(number) for number in range(parsed.network.num_layers)]
        kind = trt.LayerType.MATRIX_MULTIPLY
        types = {layer.get_output(0).dtype for layer in layers if layer.type == kind}
        assert types == {trt.DataType.HALF}


def test_parser_sees_the_contract(engine_builder, half_flan_graphs):
    half, int64 = trt.DataType.HALF, trt.DataType.INT64
    layers = half_flan_graphs.decoder_layers
    encoder, decoder = (
        engine_builder.ParsedGraph(graph)
        for graph in (half_flan_graphs.encoder, half_flan_graphs.decoder)
    )
    assert tensors(encoder.network, "input") == dict.fromkeys(
        ("input_ids", "attention_mask"), (int64, (-1, -1))
    )
    assert tensors(encoder.network, "output") == cache("cross_key_values", layers, half)
    assert tensors(decoder.network, "input") == {
        **dict.fromkeys(("input_ids", "encoder_attention_mask"), (int64, (-1, -1))),
        **cache("past_key_values", layers, half),
        **cache("cross_key_values", layers, half),
    }
    # The parser does not see that the logits are of one position.
    assert tensors(decoder.network, "output") == {
        "logits": (half, (-1, -1, VOCABULARY)),
        **cache("present", layers, half),
    }


def test_compiling_for_a_gpu(engine_builder, half_flan_graphs, tmp_path, monkeypatch):
    """The stages of a job for the Triton container, with the graphs that are here already."""
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
    graphs = (half_flan_graphs.decoder, half_flan_graphs.encoder)

    def export_graphs(given, directory, precision):
        assert precision == "fp16"
        for graph in graphs:
            shutil.copyfile(graph, directory / graph.name)

    monkeypatch.setattr(torch_model, "export_graphs", export_graphs)
    asked = Hyperparameters(8, 128, 64, target="sm75")

    with building_for("SM75"):
        compile_checkpoint(Job(asked, checkpoint), Gpu("Tesla T4", "sm75"), scratch)

    files = {"config.json", "generation_config.json", "tokenizer.json", "engine.json"}
    files |= {"encoder.engine", "decoder.engine", "timing.cache"}
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
