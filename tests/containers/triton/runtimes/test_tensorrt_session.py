"""The session on the GPU, on stand-ins for CUDA and TensorRT: the same answers as the CPU's.

Nothing here ran on a GPU. The stand-ins refuse what NVIDIA's documentation forbids, and compute
the graphs with ONNX Runtime.
"""

import importlib
import shutil
from dataclasses import replace

import numpy as np
import pytest

from containers.serving.predictor import ModelLoadError, ModelLostError
from containers.tensorrt.engine_metadata import (
    EngineLimits,
    EngineMetadata,
    graph_digest,
    write_metadata,
)
from containers.triton.decoding import answers
from containers.triton.engine_metadata import decoder_profiles, encoder_profiles
from containers.triton.model_directory import read_config
from containers.triton.onnx_session import OnnxSequenceSession
from containers.triton.sessions import SessionLimits, open_session
from tests.containers.tensorrt.runtimes.cuda_standin import cudaError_t
from tests.containers.tensorrt.runtimes.machine import standin_machine
from tests.containers.tensorrt.runtimes.tensorrt_standin import VERSION
from tests.containers.tensorrt.runtimes.tensorrt_types import DataType
from tests.containers.tensorrt.t5_models import END, HEAD_DIM, HEADS, VOCABULARY, prompts, random_t5
from tests.containers.triton.checkpoints import write_checkpoint_files
from tests.support.groups import TORCH_MARKS, load
from tests.support.messages import message_of
from tests.support.servers import captured_logs

load("torch", group="torch")
load("onnxscript", group="torch")

pytestmark = [*TORCH_MARKS]

# Every limit is another number.
ROWS, SOURCE, NEW = 6, 11, 9
LAYERS = 2
LIMITS = SessionLimits(ROWS, SOURCE, NEW, threads=1)
METADATA = EngineMetadata(
    tensorrt_version=VERSION,
    compute_capability="sm86",
    gpu_name="NVIDIA A10G",
    graph_sha256="",
    precision="fp32",
    max_batch_size=ROWS,
    max_input_tokens=SOURCE,
    max_new_tokens=NEW,
    layers=LAYERS,
    heads=HEADS,
    head_dim=HEAD_DIM,
    vocabulary_size=VOCABULARY,
)
GRAPHS = ("decoder.onnx", "encoder.onnx")
REMEDY = "publish the model again, which builds the engine anew"


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """The model directory of a random T5, for the CPU."""
    from containers.triton.compile.model import export_graphs

    directory = tmp_path_factory.mktemp("graphs")
    model = random_t5(seed=14, gated=False, encoder_layers=1, decoder_layers=LAYERS)
    export_graphs(model, directory, "fp32")
    write_checkpoint_files(directory, num_decoder_layers=LAYERS)
    return directory


@pytest.fixture
def machine():
    with standin_machine() as made:
        yield made


@pytest.fixture
def publish(graphs, tmp_path):
    def build(machine, *, keep_graphs=False, **changes):
        """Builds the engines for this machine, with the container's own builder."""
        digest = graph_digest(graphs / GRAPHS[0], [graphs / GRAPHS[1]])
        metadata = replace(METADATA, graph_sha256=digest, **changes)
        for name in ("config.json", "tokenizer.json", *(GRAPHS if keep_graphs else ())):
            shutil.copyfile(graphs / name, tmp_path / name)
        machine.tensorrt.float_type = {"fp16": DataType.HALF, "fp32": DataType.FLOAT}[
            metadata.precision
        ]
        builder = importlib.import_module("containers.tensorrt.compile.engine_builder")
        limits = EngineLimits(
            metadata.max_batch_size, metadata.max_input_tokens, metadata.max_new_tokens
        )
        for name, profiles in (("encoder", encoder_profiles), ("decoder", decoder_profiles)):
            built = builder.build_engine(graphs / f"{name}.onnx", profiles(limits))
            (tmp_path / f"{name}.engine").write_bytes(built.plan)
        write_metadata(tmp_path, metadata)
        return tmp_path

    return build


def opened(model_dir, limits=LIMITS):
    return open_session(model_dir, read_config(model_dir), limits)


@pytest.fixture
def session(machine, publish):
    return opened(publish(machine))


class HalfReference(OnnxSequenceSession):
    """ONNX Runtime with keys, values and logits that are rounded to half precision."""

    def encode(self, input_ids, attention_mask):
        state = super().encode(input_ids, attention_mask)
        return replace(state, cross=[_rounded(tensor) for tensor in state.cross])

    def step(self, tokens, state):
        logits, after = super().step(tokens, state)
        return _rounded(logits), replace(after, past=[_rounded(each) for each in after.past])


def _rounded(array):
    return array.astype(np.float16).astype(np.float32)


class Recorder:
    """Passes everything on, and keeps the logits and the number of rows of each step."""

    def __init__(self, session):
        self._session = session
        self.logits = []

    def step(self, tokens, state):
        logits, after = self._session.step(tokens, state)
        self.logits.append(logits.copy())
        return logits, after

    def __getattr__(self, name):
        return getattr(self._session, name)


def answered(session, batch, ends):
    texts = [tuple(text) for text in batch]
    return answers(session, texts, max_new_tokens=NEW, start_token_id=0, end_token_ids=ends)


def batches():
    """The largest, then random ones of every size."""
    yield prompts(1, *[SOURCE] * ROWS)
    numbers = np.random.default_rng(7)
    for seed in range(2, 10):
        yield prompts(seed, *numbers.integers(1, SOURCE + 1, size=numbers.integers(1, ROWS + 1)))
    yield prompts(11, 1)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_answers_and_logits_are_those_of_onnx_runtime(machine, graphs, publish, precision):
    reference_class = HalfReference if precision == "fp16" else OnnxSequenceSession
    reference = reference_class(graphs, threads=1)
    session = opened(publish(machine, precision=precision))
    # Many tokens end an answer, so that rows end at different steps.
    ends = frozenset(range(END, VOCABULARY, 6))
    sizes = set()
    for batch in batches():
        on_standins, on_cpu = Recorder(session), Recorder(reference)

        assert answered(on_standins, batch, ends) == answered(on_cpu, batch, ends)

        for found, expected in zip(on_standins.logits, on_cpu.logits, strict=True):
            assert found.dtype == np.float32
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)
        sizes.add(tuple(len(logits) for logits in on_standins.logits))
    # Rows left in the middle, and some batches went on to the last token.
    assert sum(len(set(rows)) > 1 for rows in sizes) > 3
    without_end = answered(session, prompts(3, 4, 9), frozenset())
    assert [len(answer) for answer in without_end] == [NEW, NEW]


def test_a_step_allocates_nothing_and_waits_once(machine, session):
    tokens = np.array(prompts(3, 4, 4))
    state = session.encode(tokens, np.ones_like(tokens))
    for _ in range(3):
        machine.cuda.calls.clear()
        _, state = session.step(np.zeros((2, 1), dtype=np.int64), state)
        # Tokens and mask go together; keys and values stay where they are.
        assert machine.cuda.calls == ["cudaMemcpyAsync", "cudaMemcpyAsync", "cudaStreamSynchronize"]
    machine.cuda.calls.clear()
    session.select(state, [1])
    # Of the text, and of the answer.
    assert machine.cuda.calls == ["cudaMemcpy3DAsync", "cudaMemcpy3DAsync"]


def test_rows_may_leave_before_the_first_step(machine, graphs, publish):
    found = []
    for session in (opened(publish(machine)), OnnxSequenceSession(graphs, threads=1)):
        tokens = np.array(prompts(5, 7, 7, 7))
        state = session.select(session.encode(tokens, np.ones_like(tokens)), [0, 2])
        logits, _ = session.step(np.zeros((2, 1), dtype=np.int64), state)
        found.append(logits)
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-4)


def test_a_state_is_used_once(session):
    tokens = np.array(prompts(5, 7, 7))
    start = np.zeros((2, 1), dtype=np.int64)
    state = session.encode(tokens, np.ones_like(tokens))
    session.step(start, state)
    with pytest.raises(RuntimeError, match=r"^the cache was used before, and is no more$"):
        session.step(start, state)
    assert answered(session, prompts(5, 7, 7), frozenset())


@pytest.mark.parametrize(("rows", "columns"), [(ROWS + 1, 1), (1, SOURCE + 1)])
def test_batches_larger_than_the_engine_are_a_bug(session, rows, columns):
    tokens = np.ones((rows, columns), dtype=np.int64)
    with pytest.raises(ValueError, match=f"^a batch of {rows} rows and {columns} columns; the "):
        session.encode(tokens, tokens)


def test_more_tokens_than_the_engine_makes_are_a_bug(session):
    one = np.ones((1, 1), dtype=np.int64)
    state = session.encode(one, one)
    for _ in range(NEW):
        _, state = session.step(one, state)
    with pytest.raises(ValueError, match=f"^a step after {NEW} tokens; the decoder makes at most"):
        session.step(one, state)


def test_errors_of_a_batch(machine, session):
    machine.tensorrt.refusals["execute_async_v3"] = "no kernel image"
    with pytest.raises(RuntimeError, match=r"^TensorRT refuses the encoder: no kernel image$"):
        answered(session, prompts(5, 7), frozenset())
    machine.tensorrt.refusals.clear()
    assert answered(session, prompts(5, 7), frozenset())
    machine.cuda.failures["cudaStreamSynchronize"] = cudaError_t.cudaErrorIllegalAddress
    # Not an error that the next request could survive.
    with pytest.raises(ModelLostError, match="cudaErrorIllegalAddress"):
        answered(session, prompts(5, 7), frozenset())


def refusal(model_dir, limits=LIMITS):
    message = message_of(ModelLoadError, opened, model_dir, limits)
    assert "\n" not in message
    return message


class TestStart:
    def test_the_log_says_what_serves_and_why(self, machine, graphs, publish):
        with captured_logs() as logs:
            opened(graphs)
            opened(publish(machine))
        on_cpu, on_gpu = logs.events("backend_selected")
        assert on_cpu["backend"] == "onnxruntime-cpu"
        assert on_cpu["reason"] == (
            "the model directory holds encoder.onnx and decoder.onnx, and no engines"
        )
        assert on_gpu["backend"] == "tensorrt"
        assert on_gpu["gpu"] == "NVIDIA A10G"
        assert on_gpu["free_gpu_bytes"] == machine.cuda.free_bytes
        assert on_gpu["reason"] == ("the model directory holds encoder.engine and decoder.engine")

    def test_engines_of_another_gpu(self, publish):
        with standin_machine(name="Tesla T4", capability=(7, 5)) as machine:
            assert refusal(publish(machine, keep_graphs=True)) == (
                "the pair of encoder.engine and decoder.engine cannot serve here: it was built for "
                f"sm86 (NVIDIA A10G), and this GPU is sm75; {REMEDY}"
            )

    def test_no_gpu(self, machine, publish):
        machine.cuda.failures["cudaSetDevice"] = cudaError_t.cudaErrorNoDevice
        assert refusal(publish(machine, keep_graphs=True)) == (
            "encoder.engine needs a GPU, and CUDA finds none that it can use: cudaSetDevice: no "
            "CUDA-capable device is detected (cudaErrorNoDevice); deploy on an instance type with "
            "the GPU that it was built for, or publish the model for the CPU"
        )

    def test_engines_that_changed_places(self, machine, publish):
        model_dir = publish(machine)
        shutil.copyfile(model_dir / "encoder.engine", model_dir / "decoder.engine")
        assert refusal(model_dir).startswith(
            "decoder.engine is not the engine of T5's decoder step that engine.json describes: "
            "input encoder_attention_mask is missing; "
        )

    def test_engines_of_smaller_batches(self, machine, publish):
        model_dir = publish(machine, max_new_tokens=NEW - 1)
        write_metadata(model_dir, replace(METADATA, graph_sha256="0" * 64))
        message = refusal(model_dir)
        assert message.startswith(
            "decoder.engine is not the engine of T5's decoder step that engine.json describes: "
            f"profile 1 takes past_key_values.0.key of [1..{ROWS}, {HEADS}, 1..{NEW - 2}, "
            f"{HEAD_DIM}] instead of [1..{ROWS}, {HEADS}, 1..{NEW - 1}, {HEAD_DIM}]; "
        )

    def test_damaged_engine(self, machine, publish):
        model_dir = publish(machine, keep_graphs=True)
        (model_dir / "decoder.engine").write_bytes(b"cut off")
        with captured_logs() as logs:
            session = opened(model_dir)
        assert logs.events("backend_selected")[0]["reason"] == (
            "built anew, because damaged: decoder.engine"
        )
        assert answered(session, prompts(5, 7), frozenset())
        # Both graphs are covered by the digest.
        (model_dir / "encoder.onnx").unlink()
        assert refusal(model_dir) == (
            "decoder.engine is damaged: TensorRT cannot open it (IRuntime::deserializeCudaEngine: "
            "magicTag mismatch), and decoder.onnx is not the graph that it was built from; "
            f"{REMEDY}"
        )

    def test_exactly_enough_memory_is_enough(self, publish):
        with standin_machine(memory_bytes=1 << 30) as machine:
            opened(publish(machine))
            used = machine.cuda.memory_bytes - machine.cuda.free_bytes
        with standin_machine(memory_bytes=used) as machine:
            assert answered(opened(publish(machine)), prompts(5, 7), frozenset())
            assert machine.cuda.free_bytes == 0
        with standin_machine(memory_bytes=used - 1) as machine:
            message = refusal(publish(machine))
            assert message.startswith(f"the engines need {used} more bytes of GPU memory for ")
            assert "cudaMalloc" not in machine.cuda.calls

    def test_an_answer_of_one_token(self, machine, graphs, publish):
        session = opened(publish(machine, max_new_tokens=1), replace(LIMITS, max_new_tokens=1))
        found = [
            answers(each, [(5, END)], max_new_tokens=1, start_token_id=0, end_token_ids=frozenset())
            for each in (session, OnnxSequenceSession(graphs, threads=1))
        ]
        assert found[0] == found[1]
        assert len(found[0][0]) == 1
