"""What the tests of this family share: models and graphs that take long to make, made once."""

import copy
import gc
import os

import pytest

from containers.tensorrt.model_directory import read_config
from containers.tensorrt.runtimes.onnx_runtime import OnnxRuntimeSession
from tests.containers.tensorrt.rtx_builder import rtx_engine_builder
from tests.containers.tensorrt.runtimes.machine import standin_machine
from tests.containers.tensorrt.sample_model import GPT2, SAMPLE
from tests.containers.tensorrt.t5_models import (
    T5Graphs,
    add_outliers,
    random_t5,
    save_checkpoint,
)

# CUDA reads it at its first call: made-up addresses would do harm on a GPU, were there one.
os.environ["CUDA_VISIBLE_DEVICES"] = ""


@pytest.fixture
def machine():
    with standin_machine() as made:
        yield made


@pytest.fixture(autouse=True)
def uncollected(request):
    """Collects no garbage in a test that uses NVIDIA's builder.

    TensorRT calls a log with a lock held, and the deletion of a builder waits for that lock. A test
    that expects an error leaves its builder to the collection of garbage, which may come in the log
    of the next test.
    """
    if request.node.get_closest_marker("builder") is None:
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.fixture(scope="session")
def session():
    return OnnxRuntimeSession(SAMPLE, read_config(SAMPLE), intra_op_threads=1)


@pytest.fixture
def engine_builder():
    with rtx_engine_builder() as module:
        yield module


@pytest.fixture(scope="session")
def gpt2():
    """A random GPT-2 of the sizes of `GPT2`; its greedy tokens vary with the prompt."""
    import torch
    import transformers

    torch.manual_seed(5)
    config = transformers.GPT2Config(
        vocab_size=GPT2.vocabulary_size,
        n_positions=GPT2.max_positions,
        n_embd=GPT2.heads * GPT2.head_dim,
        n_layer=GPT2.layers,
        n_head=GPT2.heads,
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
    model = transformers.GPT2LMHeadModel(config)
    with torch.no_grad():
        # Biases and norms start out all equal, and the exporter merges tensors that are equal.
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    # Rounded, so that a half-precision checkpoint holds exactly these values.
    return model.half().float().eval()


@pytest.fixture(scope="session")
def half_gpt2_graph(gpt2, tmp_path_factory):
    from containers.tensorrt.export.gpt2 import export_gpt2_step

    path = tmp_path_factory.mktemp("half-gpt2") / "model.onnx"
    export_gpt2_step(copy.deepcopy(gpt2).half(), path, precision="fp16")
    return path


def _exported(model, directory, precision):
    from containers.tensorrt.export import t5

    encoder, decoder = directory / "encoder.onnx", directory / "decoder.onnx"
    t5.export_t5_encoder(model, encoder, precision=precision)
    t5.export_t5_decoder_step(model, decoder, precision=precision)
    return T5Graphs(model, encoder, decoder)


@pytest.fixture(scope="session")
def t5_graphs(tmp_path_factory):
    """As T5 was first: float32, the embedding as its head; fewer encoder than decoder layers."""
    model = random_t5(seed=14, gated=False, encoder_layers=1, decoder_layers=2)
    return _exported(model, tmp_path_factory.mktemp("t5"), "fp32")


@pytest.fixture(scope="session")
def flan_graphs(tmp_path_factory):
    """As FLAN-T5: float32, gated, a head of its own; distances of few tokens are far."""
    model = random_t5(
        seed=12,
        gated=True,
        encoder_layers=2,
        decoder_layers=1,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=16,
    )
    return _exported(model, tmp_path_factory.mktemp("flan"), "fp32")


@pytest.fixture(scope="session")
def half_flan_graphs(tmp_path_factory):
    """As FLAN-T5 in float16, loaded by transformers; its feed-forward layers outgrow float16."""
    import torch
    import transformers

    model = random_t5(seed=2, gated=True, encoder_layers=1, decoder_layers=1)
    add_outliers(model)
    directory = tmp_path_factory.mktemp("half-flan")
    save_checkpoint(model, directory)
    loaded = transformers.T5ForConditionalGeneration.from_pretrained(directory, dtype=torch.float16)
    return _exported(loaded.eval(), directory, "fp16")
