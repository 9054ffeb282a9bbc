"""Starting on an engine, on stand-ins for the GPU, CUDA and TensorRT: what is refused, and how."""

import pickle
import shutil
from dataclasses import replace
from importlib import import_module

import pytest

from containers.serving.predictor import ModelLoadError
from containers.tensorrt.engine_metadata import write_metadata
from containers.tensorrt.generation import Prompt, generate
from containers.tensorrt.model_directory import read_config
from containers.tensorrt.predictor import TextGenerationPredictor
from slipway.planning.families.tensorrt.deployment import CACHES
from tests.containers.tensorrt.runtimes.cuda_standin import cudaError_t
from tests.containers.tensorrt.runtimes.machine import SAMPLE, SETTINGS, standin_machine
from tests.containers.tensorrt.runtimes.tensorrt_types import (
    DataType,
    TensorIOMode,
    TensorLocation,
)
from tests.containers.tensorrt.sample_model import answer
from tests.support.servers import captured_logs

REMEDY = "publish the model again, which builds the engine anew"
MODEL = read_config(SAMPLE)
HEADS, WIDTH, VOCABULARY = MODEL.heads, MODEL.head_dim, MODEL.vocabulary_size
# Three arenas of a key and a value for each layer: 6 rows of 5 heads of at most 64 columns of 64
# bytes. 63 columns need the most: 32 lines, since the next tensor would not be aligned after 30.
assert (HEADS, WIDTH) == (5, 32)
CACHE_BYTES = 3 * 2 * MODEL.layers * 32 * 63 * 64
PROMPT = Prompt((434, 300, 263), max_new_tokens=5)


def tokens(session):
    return generate(session, [PROMPT], eos_token_ids=frozenset())


def refusal(start):
    with pytest.raises(ModelLoadError) as caught:
        start()
    message = str(caught.value)
    assert "\n" not in message
    return message


def edit(model_dir, change):
    document = pickle.loads((model_dir / "model.engine").read_bytes())  # noqa: S301  (our own)
    change(document)
    (model_dir / "model.engine").write_bytes(pickle.dumps(document))


def test_as_many_caches_are_allocated_as_the_memory_estimate_has(machine):
    cache = import_module("containers.tensorrt.runtimes.tensorrt.cache")
    assert cache.ARENAS == CACHES


def test_the_log_says_what_serves_and_why(machine, tmp_path):
    machine.publish(tmp_path)
    with captured_logs() as logs:
        session = machine.open(tmp_path)
    [line] = logs.events("backend_selected")
    del line["time"]
    assert line == {
        "level": "INFO",
        "event": "backend_selected",
        "backend": "tensorrt",
        "version": "10.13.3.9",
        "gpu": "NVIDIA A10G",
        "compute_capability": "sm86",
        "precision": "fp16",
        "max_batch_size": 6,
        "max_input_tokens": 24,
        "max_new_tokens": 40,
        "candidates": 128,
        "cache_bytes": CACHE_BYTES,
        "free_gpu_bytes": machine.cuda.free_bytes,
        "reason": "the model directory holds model.engine",
    }
    assert tokens(session)


def test_the_container_answers_as_it_does_on_the_cpu(machine, tmp_path):
    machine.publish(tmp_path, precision="fp32")

    def answered(model_dir, *, max_batch_size):
        predictor = TextGenerationPredictor(SETTINGS, max_batch_size=max_batch_size)
        predictor.load(model_dir)
        body = {"inputs": ["Amazon S3", "A bucket"], "parameters": {"max_new_tokens": 9}}
        return answer(predictor, body)

    assert answered(tmp_path, max_batch_size=6) == answered(SAMPLE, max_batch_size=8)


def test_metadata_is_held_against_the_machine_and_the_settings(tmp_path):
    with standin_machine(name="Tesla T4", capability=(7, 5)) as machine:
        machine.publish(tmp_path, keep_graph=True, tensorrt_version="10.4.0")
        beyond = replace(SETTINGS, max_input_tokens=25, max_new_tokens=41)
        # There is a graph, and it is of no use: engines are built for one GPU on purpose.
        assert refusal(lambda: machine.open(tmp_path, beyond, max_batch_size=7)) == (
            "model.engine cannot serve here: it was built with TensorRT 10.4.0, and this container "
            "has 10.13.3.9; it was built for sm86 (NVIDIA A10G), and this GPU is sm75; its "
            "max_batch_size is 6, and SLIPWAY_MAX_BATCH_SIZE asks for 7; its max_input_tokens is "
            "24, and SLIPWAY_MAX_INPUT_TOKENS asks for 25; its max_new_tokens is 40, and "
            f"SLIPWAY_MAX_NEW_TOKENS asks for 41; {REMEDY}"
        )


def test_prompts_without_a_limit_need_an_engine_for_all_of_them(machine, tmp_path):
    machine.publish(tmp_path)
    unlimited = replace(SETTINGS, max_input_tokens=None)
    assert refusal(lambda: machine.open(tmp_path, unlimited)) == (
        "model.engine takes prompts of at most 24 tokens, and without SLIPWAY_MAX_INPUT_TOKENS the "
        "model's 127 are allowed: set it to 24 or less"
    )
    (whole := tmp_path / "whole").mkdir()
    machine.publish(whole, max_input_tokens=127)
    assert tokens(machine.open(whole, unlimited))


WRONG = "model.engine is not the engine of a step graph that engine.json describes: "


def _with_another_tensor(document):
    document["tensors"]["token_type_ids"] = document["tensors"]["input_ids"]


def _tensor(name, **changes):
    def change(document):
        document["tensors"][name] = replace(document["tensors"][name], **changes)

    return change


def _largest(profile, size, *names):
    def change(document):
        for name in names:
            document["profiles"][profile][name][2] = size

    return change


@pytest.mark.parametrize(
    ("change", "problems"),
    [
        (lambda document: document["tensors"].pop("position_ids"), "input position_ids is missing"),
        (_with_another_tensor, "token_type_ids is unknown"),
        (_tensor("logits", mode=TensorIOMode.INPUT), "output logits is missing"),
        (
            _tensor("input_ids", dtype=DataType.INT32),
            "input input_ids is INT32 [-1, -1] instead of INT64 [-1, -1]",
        ),
        (
            _tensor("past_key_values.1.value", dtype=DataType.FLOAT),
            f"input past_key_values.1.value is FLOAT [-1, {HEADS}, -1, {WIDTH}] instead of HALF "
            f"[-1, {HEADS}, -1, {WIDTH}]",
        ),
        (
            _tensor("present.0.key", shape=(-1, HEADS, -1, 7)),
            f"output present.0.key is HALF [-1, {HEADS}, -1, 7] instead of HALF "
            f"[-1, {HEADS}, -1, {WIDTH}]",
        ),
        (
            _tensor("logits", shape=(-1, VOCABULARY)),
            f"output logits is HALF [-1, {VOCABULARY}] instead of HALF [-1, 1, {VOCABULARY}]",
        ),
        (
            _tensor("attention_mask", location=TensorLocation.HOST),
            "input attention_mask is read by the host",
        ),
        (
            lambda document: document["profiles"].pop(),
            "it has 1 optimisation profile instead of 2",
        ),
        (
            _largest(0, (6, 23), "input_ids", "position_ids", "attention_mask"),
            "profile 0 takes input_ids of [1..6, 1..23] instead of [1..6, 1..24]; profile 0 takes "
            "attention_mask of [1..6, 1..23] instead of [1..6, 1..24]; profile 0 takes "
            "position_ids of [1..6, 1..23] instead of [1..6, 1..24]",
        ),
        (
            _largest(1, (5, HEADS, 63, WIDTH), "past_key_values.0.key"),
            f"profile 1 takes past_key_values.0.key of [1..5, {HEADS}, 1..63, {WIDTH}] instead of "
            f"[1..6, {HEADS}, 1..63, {WIDTH}]",
        ),
    ],
)
def test_an_engine_that_is_not_what_its_metadata_says(machine, tmp_path, change, problems):
    machine.publish(tmp_path)
    edit(tmp_path, change)
    assert refusal(lambda: machine.open(tmp_path)) == f"{WRONG}{problems}; {REMEDY}"


def test_logits_of_every_position_do_not_fit(machine, tmp_path):
    machine.publish(tmp_path)
    # How many positions the engine itself does not tell.
    edit(tmp_path, _tensor("logits", shape=(-1, -1, VOCABULARY)))
    assert tokens(machine.open(tmp_path))
    machine.tensorrt.logits_of_every_position = True
    assert refusal(lambda: machine.open(tmp_path)) == (
        "model.engine is not the engine of a step graph: for prompts of [6, 24] its logits are "
        f"[6, 24, {VOCABULARY}] instead of [6, 1, {VOCABULARY}]; {REMEDY}"
    )


def test_exactly_enough_memory_is_enough(tmp_path):
    with standin_machine(memory_bytes=1 << 30) as machine:
        machine.publish(tmp_path)
        machine.open(tmp_path)
        used = machine.cuda.memory_bytes - machine.cuda.free_bytes
    with standin_machine(memory_bytes=used) as machine:
        assert tokens(machine.open(tmp_path))
        assert machine.cuda.free_bytes == 0
    with standin_machine(memory_bytes=used - 1) as machine:
        assert refusal(lambda: machine.open(tmp_path)) == (
            f"model.engine needs {used} more bytes of GPU memory for batches of 6 rows and 64 "
            f"columns ({CACHE_BYTES} of them for keys and values), and NVIDIA A10G has {used - 1} "
            "free: take an instance type with more, or publish the model with a smaller "
            "max_batch_size, max_input_tokens or max_new_tokens"
        )
        assert "cudaMalloc" not in machine.cuda.calls


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            "cudaSetDevice",
            cudaError_t.cudaErrorNoDevice,
            "model.engine needs a GPU, and CUDA finds none that it can use: cudaSetDevice: no "
            "CUDA-capable device is detected (cudaErrorNoDevice); deploy on an instance type with "
            "the GPU that it was built for, or publish model.onnx without an engine",
        ),
        (
            "cudaMalloc",
            cudaError_t.cudaErrorMemoryAllocation,
            "model.engine cannot be loaded onto NVIDIA A10G: cudaMalloc: out of memory "
            "(cudaErrorMemoryAllocation)",
        ),
    ],
)
def test_what_cuda_refuses(machine, tmp_path, call, error, message):
    machine.publish(tmp_path, keep_graph=True)
    machine.cuda.failures[call] = error
    assert refusal(lambda: machine.open(tmp_path)) == message


@pytest.mark.parametrize("call", ["create_execution_context", "set_optimization_profile_async"])
def test_a_context_that_tensorrt_does_not_make(machine, tmp_path, call):
    machine.publish(tmp_path)
    machine.tensorrt.refusals[call] = "OutOfMemory: requested size was 9000"
    assert refusal(lambda: machine.open(tmp_path)) == (
        "TensorRT makes no execution context of model.engine for profile 0: OutOfMemory: requested "
        "size was 9000"
    )


class TestDamagedEngine:
    DAMAGE = (
        "model.engine is damaged: TensorRT cannot open it (IRuntime::deserializeCudaEngine: "
        "magicTag mismatch)"
    )

    @pytest.fixture
    def published(self, machine, tmp_path):
        metadata = machine.publish(tmp_path, keep_graph=True)
        engine = tmp_path / "model.engine"
        engine.write_bytes(engine.read_bytes()[:-1])
        return metadata

    def test_it_is_built_anew_from_the_graph(self, machine, published, tmp_path):
        (tmp_path / "timing.cache").write_bytes(b"measured")
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        with captured_logs() as logs:
            session = machine.open(tmp_path)
        [started] = logs.events("engine_rebuild_started")
        assert (started["level"], started["reason"]) == (
            "WARNING",
            f"{self.DAMAGE}; it is built anew from model.onnx, which takes minutes at every start",
        )
        [selected] = logs.events("backend_selected")
        assert selected["backend"] == "tensorrt"
        assert selected["reason"] == "model.engine is damaged, and was built anew from model.onnx"
        (other := tmp_path / "other").mkdir()
        machine.publish(other)
        assert tokens(session) == tokens(machine.open(other))
        # SageMaker mounts the directory read-only.
        shutil.rmtree(other)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before

    def test_it_is_refused_where_it_cannot_be_built_anew(self, machine, published, tmp_path):
        machine.tensorrt.refusals["build_serialized_network"] = "no implementation for node_MatMul"
        assert refusal(lambda: machine.open(tmp_path)) == (
            f"{self.DAMAGE}, and TensorRT cannot build an engine of model.onnx: no implementation "
            "for node_MatMul"
        )
        write_metadata(tmp_path, replace(published, graph_sha256="0" * 64))
        assert refusal(lambda: machine.open(tmp_path)) == (
            f"{self.DAMAGE}, and model.onnx is not the graph that it was built from; {REMEDY}"
        )
        (tmp_path / "model.onnx").unlink()
        assert refusal(lambda: machine.open(tmp_path)) == (
            f"{self.DAMAGE}, and there is no model.onnx to build it from; {REMEDY}"
        )
