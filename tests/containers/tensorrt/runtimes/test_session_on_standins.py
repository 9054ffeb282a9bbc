"""The TensorRT back end on stand-ins for the GPU, CUDA and TensorRT: the same tokens as the CPU's.

Nothing here ran on a GPU. The stand-ins refuse what NVIDIA's documentation forbids, and compute the
sample's graph with ONNX Runtime.
"""

import collections
from dataclasses import replace

import numpy as np
import pytest

from containers.serving.predictor import ModelLostError
from containers.tensorrt.beam_search import Beams
from containers.tensorrt.generation import DecodingBatch, Prompt, generate
from containers.tensorrt.model_directory import read_config
from containers.tensorrt.runtimes.onnx_runtime import OnnxRuntimeSession
from containers.tensorrt.sampling import Sampling
from containers.tensorrt.stepping import HostLogits, StepInputs
from tests.containers.tensorrt.runtimes.cuda_standin import cudaError_t
from tests.containers.tensorrt.runtimes.machine import LIMITS
from tests.containers.tensorrt.sample_model import NO_END, PROMPTS, SAMPLE

# The end of a batch of any size.
_ALL = 99
ONE = StepInputs(*(np.full((1, 1), value, np.int64) for value in (1, 1, 0)))
BEAMS = Prompt((434, 300, 263), max_new_tokens=9, beams=Beams(num_beams=4, num_return_sequences=2))
SAMPLED = Prompt((300, 263), max_new_tokens=15, sampling=Sampling(temperature=1.2, seed=4))


class HalfReference(OnnxRuntimeSession):
    """ONNX Runtime with a cache and logits that are rounded to half precision after every step."""

    def step(self, *arguments):
        return _all_rounded(*super().step(*arguments))


def _all_rounded(logits, cache):
    for tensor in cache.tensors:
        tensor[:] = _rounded(tensor)
    return HostLogits(_rounded(logits.of_rows(0, _ALL))), cache


def _rounded(array):
    return array.astype(np.float16).astype(np.float32)


@pytest.fixture(scope="module")
def references():
    config = read_config(SAMPLE)
    return {
        "fp32": OnnxRuntimeSession(SAMPLE, config, intra_op_threads=1),
        "fp16": HalfReference(SAMPLE, config, intra_op_threads=1),
    }


@pytest.fixture
def session(machine, tmp_path):
    machine.publish(tmp_path)
    return machine.open(tmp_path)


class Recorder:
    """Passes everything on, and keeps the logits."""

    def __init__(self, session):
        self._session = session
        self.logits = []

    def step(self, inputs, *others):
        result = self._session.step(inputs, *others)
        self.logits.append(result[0].of_rows(0, len(inputs.input_ids)).copy())
        return result

    def __getattr__(self, name):
        return getattr(self._session, name)


def coming_and_going(session):
    """Prompts join, shorter and longer than what is there; some leave early, some end at once."""
    batch = DecodingBatch(session, eos_token_ids=NO_END)
    continuations = batch.join(PROMPTS[:1])
    for prompts in (PROMPTS[1:2], PROMPTS[2:3], (SAMPLED,), PROMPTS[3:]):
        batch.step()
        continuations += batch.join(prompts)
    batch.step()
    batch.leave(continuations[2:3])
    while batch.rows:
        batch.step()
    # Of an empty batch, a longer prompt follows.
    continuations += batch.join([Prompt(tuple(range(1, 24)), max_new_tokens=40)])
    batch.step()
    continuations += batch.join(PROMPTS[:1])
    while batch.rows:
        batch.step()
    return [each.results for each in continuations]


def beams(session):
    """Rows are copied and change places, beside rows that do not."""
    return generate(session, [PROMPTS[0], BEAMS, PROMPTS[1]], eos_token_ids=NO_END)


def the_largest(session):
    """As many rows, tokens and new tokens as the engine takes."""
    prompts = [
        Prompt(tuple(range(7 * row, 7 * row + LIMITS.max_input_tokens)), LIMITS.max_new_tokens)
        for row in range(LIMITS.max_batch_size)
    ]
    return generate(session, prompts, eos_token_ids=NO_END)


def drawn(session):
    """A seed gives these tokens."""
    ways = [(1.0, None, 1.0), (0.7, 50, 1.0), (1.5, None, 0.9), (2.0, 300, 0.99), (1.0, 4, 0.5)]
    prompts = [
        replace(SAMPLED, sampling=Sampling(*way, seed=seed)) for seed, way in enumerate(ways)
    ]
    found = generate(session, prompts, eos_token_ids=NO_END)
    assert len({tokens for [tokens] in found}) == len(prompts)
    return found


@pytest.mark.parametrize(
    ("decode", "precision"),
    [
        (coming_and_going, "fp32"),
        (coming_and_going, "fp16"),
        (beams, "fp32"),
        (the_largest, "fp32"),
        (drawn, "fp32"),
    ],
)
def test_tokens_and_logits_are_those_of_onnx_runtime(
    machine, references, tmp_path, precision, decode
):
    machine.publish(tmp_path, precision=precision)
    on_standins, on_cpu = Recorder(machine.open(tmp_path)), Recorder(references[precision])

    assert decode(on_standins) == decode(on_cpu)

    assert len(on_standins.logits) == len(on_cpu.logits) > 1
    for found, expected in zip(on_standins.logits, on_cpu.logits, strict=True):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_a_step_allocates_nothing_and_waits_once(machine, session):
    batch = DecodingBatch(session, eos_token_ids=NO_END)
    batch.join(PROMPTS[:1])
    machine.cuda.calls.clear()

    batch.step()

    # Tokens, mask and positions go together; the cache stays where it is.
    assert machine.cuda.calls == ["cudaMemcpyAsync", "cudaMemcpyAsync", "cudaStreamSynchronize"]


def copied_bytes(machine, session, prompts):
    """Returns the size of each copy from the GPU that a step of these prompts makes."""
    batch = DecodingBatch(session, eos_token_ids=NO_END)
    batch.join(prompts)
    machine.cuda.downloads.clear()
    batch.step()
    return list(machine.cuda.downloads)


def test_all_logits_are_copied_only_if_a_row_needs_them(machine, tmp_path):
    vocabulary = machine.publish(tmp_path).vocabulary_size
    session = machine.open(tmp_path)
    row_bytes = 2 * vocabulary  # of fp16
    # Tokens, logits and a sum for each row, each aligned to 256 bytes.
    one, three = (2 * rows * 128 * 4 + 4 * rows for rows in (1, 3))

    assert copied_bytes(machine, session, PROMPTS[:1]) == [one]
    narrow = replace(SAMPLED, sampling=Sampling(top_k=50, top_p=0.9, seed=1))
    assert copied_bytes(machine, session, [narrow, PROMPTS[0], narrow]) == [three]
    # Only the candidates are known to have a greater logit than the others.
    wide = replace(SAMPLED, sampling=Sampling(top_k=vocabulary - 1, seed=1))
    assert copied_bytes(machine, session, [PROMPTS[0], wide, PROMPTS[0]]) == [three, row_bytes]
    beams_bytes = BEAMS.rows * row_bytes
    assert copied_bytes(machine, session, [BEAMS]) == [4 * (2 * 128 * 4 + 4), beams_bytes]


def test_rows_move_with_a_copy_for_each_run_of_them(machine, session):
    prompts = np.arange(1, 19, dtype=np.int64).reshape(6, 3)
    inputs = StepInputs(prompts, np.ones_like(prompts), np.tile(np.arange(3), (6, 1)))
    _, cache = session.step(inputs, np.ones(6))

    def copies(rows, first_column):
        nonlocal cache
        machine.cuda.calls.clear()
        cache = session.select(cache, rows, first_column)
        return collections.Counter(machine.cuda.calls)

    assert copies([0, 1, 2, 3, 4, 5], 0) == {}
    # Rows at the end are dropped where they are.
    assert copies([0, 1, 2, 3, 4], 0) == {}
    assert copies([0, 2, 3], 0) == {"cudaMemcpy3DAsync": 2}
    assert copies([0, 1, 2], 1) == {"cudaMemcpy3DAsync": 1}
    assert copies([2, 2, 0, 1], 0) == {"cudaMemcpy3DAsync": 3}


def test_a_cache_is_used_once(session):
    _, cache = session.step(ONE, [1.0])
    session.select(cache, [0], 0)
    with pytest.raises(RuntimeError, match=r"^the cache was used before, and is no more$"):
        session.step(ONE, [1.0], cache)


def test_caches_that_are_forgotten_make_room(session):
    for _ in range(9):
        _, cache = session.step(ONE, [1.0])
    # Kept, as by a traceback: the oldest gives way, and says so if it is used all the same.
    kept = [cache] + [session.step(ONE, [1.0])[1] for _ in range(3)]
    session.select(kept[-1], [0], 0)
    with pytest.raises(RuntimeError, match=r"^the cache was used before, and is no more$"):
        session.select(kept[0], [0], 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            "execute_async_v3",
            "TensorRT refuses the step: IExecutionContext::enqueueV3: no kernel image",
        ),
        (
            "set_input_shape",
            "TensorRT refuses input_ids: IExecutionContext::enqueueV3: no kernel image",
        ),
    ],
)
def test_what_tensorrt_refuses_fails_the_step(machine, session, call, message):
    machine.tensorrt.refusals[call] = "IExecutionContext::enqueueV3: no kernel image"
    with pytest.raises(RuntimeError) as caught:
        generate(session, PROMPTS[:1], eos_token_ids=NO_END)
    assert str(caught.value) == message
    machine.tensorrt.refusals.clear()
    assert generate(session, PROMPTS[:1], eos_token_ids=NO_END)


def test_an_error_of_cuda_names_the_call(machine, session):
    machine.cuda.failures["cudaStreamSynchronize"] = cudaError_t.cudaErrorIllegalAddress
    # Not an error that the next request could survive.
    with pytest.raises(ModelLostError) as caught:
        generate(session, PROMPTS[:1], eos_token_ids=NO_END)
    assert type(caught.value) is machine.module("device_memory").DeviceError
    assert str(caught.value) == (
        "cudaStreamSynchronize: an illegal memory access was encountered (cudaErrorIllegalAddress)"
    )


@pytest.mark.parametrize(("rows", "columns"), [(7, 1), (1, 65)])
def test_steps_larger_than_the_engine_are_a_bug(session, rows, columns):
    ids = np.ones((rows, columns), dtype=np.int64)
    with pytest.raises(ValueError, match=f"^a step of {rows} rows and {columns} columns; the "):
        session.step(StepInputs(ids, ids, ids), [1.0] * rows)
