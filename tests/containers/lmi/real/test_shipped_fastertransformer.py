"""The shipped configs for FasterTransformer answer, on the real server of the version they name.

The package is what `slipway publish` sends, the weights, of a small T5 with random numbers, are
copied from S3, and the handler is the config's own: the server's for FLAN-T5-XXL, ours for
FLAN-UL2. FasterTransformer is a stand-in, with the arguments and answers of the images' package and
transformers behind them. What comes back is held against transformers alone.

It needs PyTorch and transformers in the interpreter of the handlers.
"""

import contextlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from tests.containers.lmi.real import servers
from tests.containers.lmi.real.references import Call, reference
from tests.containers.lmi.real.servers import DjlServing
from tests.containers.lmi.real.shipped import DIGEST, answering, config_on_cpu

# A start of 0.21.0 may have to be repeated.
pytestmark = [pytest.mark.djl_serving, pytest.mark.torch, pytest.mark.timeout(600)]

STAND_IN = servers.STAND_INS / "fastertransformer_over_transformers"
# What a CPU forces: the server counts GPUs before it starts another engine than Python, and a
# degree above 1 needs as many of that engine's processes.
ON_CPU = {"engine": "Python", "tensor_parallel_degree": 1}
# Four tasks, as the published measurement has in one request.
TASKS = (
    "Translate to German: the weather is fine today.",
    "Who wrote the first program for a computer that was never built?",
    "Is the boiling point of nitrogen above that of water? Think step by step.",
    "Summarize: a ship stands on a slipway until it is built, then it glides into the water.",
)
SAMPLING = {"temperature": 2.0, "top_k": 9, "top_p": 0.75}
WORKER_STARTED = "Python engine started."


@dataclass(frozen=True)
class Served:
    """A server that is ready, and what transformers generates for each of `expected_calls`."""

    server: DjlServing
    texts: Mapping[str, list[str]]


def expected_calls(dtype):
    def call(*prompts, **arguments):
        return Call(prompts, dtype, arguments)

    return {
        **{task: call(task, max_new_tokens=20) for task in TASKS},
        "four": call(*TASKS, max_new_tokens=20),
        "without a number": call(TASKS[0], max_new_tokens=200),
        "short": call(TASKS[0], max_new_tokens=7),
        "beams": call(TASKS[1], max_new_tokens=20, num_beams=4, length_penalty=0.0),
        "penalty": call(TASKS[1], max_new_tokens=20, repetition_penalty=4.0),
        "seed 7": call(TASKS[1], max_new_tokens=20, do_sample=True, seed=7, **SAMPLING),
        "seed 8": call(TASKS[1], max_new_tokens=20, do_sample=True, seed=8, **SAMPLING),
    }


@contextlib.contextmanager
def served_config(name, aws_url, tmp_path_factory):
    config = config_on_cpu(name, tmp_path_factory.mktemp("project"), **ON_CPU)
    home = servers.home_of(config.serving.version)
    dtype = {"fp32": "float32", "bf16": "bfloat16"}[config.serving.dtype]
    servers.require("torch", "transformers")
    expected = reference("t5", tmp_path_factory.mktemp("t5"), expected_calls(dtype))
    release = "of_" + "_".join(home.version.split(".")[:2])
    with answering(
        home,
        lambda: tmp_path_factory.mktemp("djl"),
        config,
        expected.weights,
        aws_url=aws_url,
        PYTHONPATH=os.pathsep.join((str(servers.ROOT), str(STAND_IN / release))),
    ) as server:
        yield Served(server, expected.texts)


@pytest.fixture(scope="module")
def flan_t5_xxl(aws_url, tmp_path_factory):
    with served_config("flan-t5-xxl", aws_url, tmp_path_factory) as served:
        yield served


@pytest.fixture(scope="module")
def flan_ul2(aws_url, tmp_path_factory):
    with served_config("flan-ul2", aws_url, tmp_path_factory) as served:
        yield served


def body(*tasks, **parameters):
    return {"inputs": tasks[0] if len(tasks) == 1 else list(tasks), "parameters": parameters}


def generated(answer):
    """The texts of an answer in the form of every Slipway container."""
    assert (answer.status, answer.content_type) == (200, "application/json"), answer
    return [entry["generated_text"] for entry in answer.document]


def weights_were_copied(server):
    """Whether the library was given what lies in S3, and not the package."""
    address = f"s3://{servers.BUCKET}/artifacts/{DIGEST}/files/"
    (path,) = re.findall(r"stand-in: weights in (\S+)", server.log)
    assert "/model" not in path, path
    return f"S3 url found, start downloading from {address}" in server.log


@pytest.mark.parametrize("name", ["flan_t5_xxl", "flan_ul2"])
def test_the_models_texts_tell_the_calls_apart(name, request):
    """Without which the other tests would show little."""
    texts = request.getfixturevalue(name).texts
    of_one_prompt = [texts[call][0] for call in (TASKS[1], "beams", "penalty", "seed 7", "seed 8")]
    assert len({*of_one_prompt, *(texts[task][0] for task in TASKS)}) == 8
    assert len(texts["short"][0]) < len(texts[TASKS[0]][0]) < len(texts["without a number"][0])


# FLAN-T5-XXL: djl_python.fastertransformer of 0.21.0.


def test_flan_t5_xxl_answers_a_request_over_a_stand_in_for_fastertransformer(flan_t5_xxl):
    assert flan_t5_xxl.server.ping().status == 200
    assert weights_were_copied(flan_t5_xxl.server)
    answer = flan_t5_xxl.server.post({"inputs": TASKS[0]})
    assert (answer.status, answer.document) == (200, flan_t5_xxl.texts["without a number"])
    assert answer.content_type is None


def test_flan_t5_xxl_answers_four_tasks_at_once_over_a_stand_in_for_fastertransformer(flan_t5_xxl):
    before = len(flan_t5_xxl.server.generated_for())
    answer = flan_t5_xxl.server.post(body(*TASKS, max_seq_len=20))
    assert (answer.status, answer.document) == (200, flan_t5_xxl.texts["four"])
    assert flan_t5_xxl.server.generated_since(before) == [list(TASKS)]


def test_flan_t5_xxl_answers_requests_together_over_a_stand_in_for_fastertransformer(flan_t5_xxl):
    """One after the other: this handler takes no batches."""
    before = len(flan_t5_xxl.server.generated_for())
    answers = flan_t5_xxl.server.post_together(*(body(task, max_seq_len=20) for task in TASKS))
    assert [(answer.status, answer.document) for answer in answers] == [
        (200, flan_t5_xxl.texts[task]) for task in TASKS
    ]
    calls = flan_t5_xxl.server.generated_since(before, len(TASKS))
    assert sorted(calls) == sorted([task] for task in TASKS)


@pytest.mark.parametrize(
    ("parameters", "task", "expected"),
    [
        ({"max_seq_len": 7}, TASKS[0], "short"),
        ({"max_seq_len": 20, "beam_width": 4}, TASKS[1], "beams"),
        ({"max_seq_len": 20, "repetition_penalty": 4.0}, TASKS[1], "penalty"),
        ({"max_seq_len": 20, "random_seed": 7, **SAMPLING}, TASKS[1], "seed 7"),
        ({"max_seq_len": 20, "random_seed": 8, **SAMPLING}, TASKS[1], "seed 8"),
    ],
)
def test_flan_t5_xxl_takes_parameters_by_the_librarys_names_over_a_stand_in_for_fastertransformer(
    flan_t5_xxl, parameters, task, expected
):
    answer = flan_t5_xxl.server.post(body(task, **parameters))
    assert (answer.status, answer.document) == (200, flan_t5_xxl.texts[expected])


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        # From 0.22.1 on the handler translates these two.
        (
            body(TASKS[0], max_new_tokens=7),
            "forward() got an unexpected keyword argument 'max_new_tokens'",
        ),
        (body(TASKS[0], num_beams=4), "forward() got an unexpected keyword argument 'num_beams'"),
        (body(TASKS[0], max_seq_len="7"), "forward() cannot take '7' as max_seq_len"),
        (b"{", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ([], "pop expected at most 1 argument, got 2"),
    ],
)
def test_flan_t5_xxl_answers_bad_bodies_424_over_a_stand_in_for_fastertransformer(
    flan_t5_xxl, bad, reason
):
    answer = flan_t5_xxl.server.post(bad)
    assert (answer.status, answer.document) == (
        424,
        {"code": 424, "message": "prediction failure", "error": reason},
    )
    after = flan_t5_xxl.server.post(body(TASKS[0], max_seq_len=7))
    assert (after.status, after.document) == (200, flan_t5_xxl.texts["short"])
    assert flan_t5_xxl.server.log.count(WORKER_STARTED) == 1


# FLAN-UL2: our handler, which in one process calls FasterTransformer inside Triton.


def test_flan_ul2_answers_a_request_over_a_stand_in_for_fastertransformer(flan_ul2):
    assert flan_ul2.server.ping().status == 200
    assert weights_were_copied(flan_ul2.server)
    # 20 tokens are what it generates where a request does not say.
    assert generated(flan_ul2.server.post({"inputs": TASKS[0]})) == flan_ul2.texts[TASKS[0]]


def test_flan_ul2_answers_four_tasks_at_once_over_a_stand_in_for_fastertransformer(flan_ul2):
    before = len(flan_ul2.server.generated_for())
    texts = generated(flan_ul2.server.post(body(*TASKS)))
    assert texts == [flan_ul2.texts[task][0] for task in TASKS]
    # In Triton each prompt has values of its own, so the stand-in computes them one by one.
    assert flan_ul2.server.generated_since(before, len(TASKS)) == [[task] for task in TASKS]


def test_flan_ul2_answers_requests_together_over_a_stand_in_for_fastertransformer(flan_ul2):
    answers = flan_ul2.server.post_together(*map(body, TASKS), {"inputs": 3})
    assert [generated(answer) for answer in answers[:-1]] == [flan_ul2.texts[t] for t in TASKS]
    assert (answers[-1].status, answers[-1].document["error"]["code"]) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("parameters", "task", "expected"),
    [
        ({"max_new_tokens": 7}, TASKS[0], "short"),
        ({"repetition_penalty": 4.0}, TASKS[1], "penalty"),
        ({"do_sample": True, "seed": 7, **SAMPLING}, TASKS[1], "seed 7"),
        ({"do_sample": True, "seed": 8, **SAMPLING}, TASKS[1], "seed 8"),
    ],
)
def test_flan_ul2_honours_parameters_over_a_stand_in_for_fastertransformer(
    flan_ul2, parameters, task, expected
):
    assert generated(flan_ul2.server.post(body(task, **parameters))) == flan_ul2.texts[expected]
