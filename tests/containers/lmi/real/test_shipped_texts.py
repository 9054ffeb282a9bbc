"""The shipped configs for FasterTransformer and DeepSpeed answer, on the real server of each.

The package is what `slipway publish` sends, the weights, of a small model with random numbers, are
copied from S3, and what comes back is held against transformers alone.

FasterTransformer is a stand-in, with the arguments and answers of the images' package and
transformers behind them. FLAN-T5-XXL has the server's own handler, and FLAN-UL2 ours. GPT-J runs on
DeepSpeed itself. Its config has no script, so that in the image the server's own handler answers,
`djl_python.deepspeed`: that one sends every prompt to a GPU by its number, whatever there is. Here
ours answers in its place, which is one more change than a CPU's.

It needs PyTorch, transformers and DeepSpeed in the interpreter of the handlers.
"""

import contextlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.containers.lmi.real import servers
from tests.containers.lmi.real.sample import COMPLETIONS
from tests.containers.lmi.real.servers import WORKER_STARTED, DjlServing
from tests.containers.lmi.real.shipped import DIGEST, answering, config_on_cpu, reference

# A start of 0.21.0 may have to be repeated.
pytestmark = [pytest.mark.djl_serving, pytest.mark.torch, pytest.mark.timeout(600)]

STAND_IN = servers.STAND_INS / "fastertransformer_over_transformers"
SAMPLING = {"temperature": 2.0, "top_k": 9, "top_p": 0.75}
SAMPLE_DIGEST = "ab" * 32


@dataclass(frozen=True)
class SmallModel:
    """A model of `small_models`, and what a CPU forces in a config that it takes the place of.

    The server counts GPUs before it starts another engine than Python. `varied` is the prompt of
    the calls with a penalty or a seed.
    """

    kind: str
    library: str
    prompts: tuple[str, ...]
    varied: str
    on_cpu: Mapping[str, Any]
    further_calls: Mapping[str, dict[str, Any]]


# Four tasks, as the published measurement has in one request.
TASKS = (
    "Translate to German: the weather is fine today.",
    "Who wrote the first program for a computer that was never built?",
    "Is the boiling point of nitrogen above that of water? Think step by step.",
    "Summarize: a ship stands on a slipway until it is built, then it glides into the water.",
)
T5 = SmallModel(
    kind="t5",
    library="transformers",
    prompts=TASKS,
    varied=TASKS[1],
    # A degree above 1 needs as many of another engine's processes.
    on_cpu={"engine": "Python", "tensor_parallel_degree": 1},
    further_calls={
        "without a number": {"max_new_tokens": 200},
        "beams": {"max_new_tokens": 20, "num_beams": 4, "length_penalty": 0.0},
    },
)
PROMPTS = (
    "The maximum number of",
    "You can",
    "A list of the tags that are",
    "An Amazon Resource Name",
)
GPT_J = SmallModel(
    kind="gptj",
    library="deepspeed",
    prompts=PROMPTS,
    varied=PROMPTS[0],
    # DeepSpeed has no fp16 on a CPU without instructions for it.
    on_cpu={"engine": "Python", "script": servers.HANDLER, "dtype": "fp32"},
    further_calls={},
)


@dataclass(frozen=True)
class Served:
    """A server that is ready, and what transformers generates for each of `expected_calls`."""

    model: SmallModel
    server: DjlServing
    texts: Mapping[str, list[str]]

    def weights_were_copied(self):
        """Whether the library was given what lies in S3, and not the package."""
        paths = re.findall(r"stand-in: weights in (\S+)", self.server.log)
        assert len(paths) == (self.model is T5)
        assert not [path for path in paths if "/model" in path]
        return self.server.has_copied(DIGEST)


def expected_calls(model, dtype):
    first, varied = [model.prompts[0]], [model.varied]
    seeded = {"do_sample": True, **SAMPLING}
    calls = {
        **{prompt: ([prompt], {}) for prompt in model.prompts},
        "four": (model.prompts, {}),
        "short": (first, {"max_new_tokens": 7}),
        "penalty": (varied, {"repetition_penalty": 4.0}),
        "seed 7": (varied, {**seeded, "seed": 7}),
        "seed 8": (varied, {**seeded, "seed": 8}),
        **{
            name: (first if name == "without a number" else varied, arguments)
            for name, arguments in model.further_calls.items()
        },
    }
    return {
        name: {
            "prompts": prompts,
            "dtype": dtype,
            "arguments": {"max_new_tokens": 20, **arguments},
        }
        for name, (prompts, arguments) in calls.items()
    }


@contextlib.contextmanager
def served_config(name, model, aws_url, tmp_path_factory):
    config = config_on_cpu(name, tmp_path_factory.mktemp("project"), **model.on_cpu)
    home = servers.home_of(config.serving.version)
    dtype = {"fp32": "float32", "bf16": "bfloat16"}[config.serving.dtype]
    servers.require("torch", "transformers", model.library)
    directory = tmp_path_factory.mktemp(model.kind)
    weights, texts = reference(model.kind, directory, expected_calls(model, dtype))
    declared = {}
    if model is T5:
        release = STAND_IN / ("of_" + "_".join(home.version.split(".")[:2]))
        declared["PYTHONPATH"] = os.pathsep.join((str(servers.ROOT), str(release)))
    with answering(
        home,
        lambda: tmp_path_factory.mktemp("djl"),
        config,
        weights,
        aws_url=aws_url,
        **declared,
    ) as server:
        yield Served(model, server, texts)


@pytest.fixture(scope="module")
def flan_t5_xxl(aws_url, tmp_path_factory):
    with served_config("flan-t5-xxl", T5, aws_url, tmp_path_factory) as served:
        yield served


@pytest.fixture(
    scope="module",
    params=[("flan-ul2", T5), ("gpt-j-6b", GPT_J)],
    ids=["flan_ul2_over_a_stand_in_for_fastertransformer", "gpt_j_6b"],
)
def ours(request, aws_url, tmp_path_factory):
    with served_config(*request.param, aws_url, tmp_path_factory) as served:
        yield served


def body(*tasks, **parameters):
    return {"inputs": tasks[0] if len(tasks) == 1 else list(tasks), "parameters": parameters}


def generated(answer):
    """The texts of an answer in the form of every Slipway container."""
    assert (answer.status, answer.content_type) == (200, "application/json"), answer
    return [entry["generated_text"] for entry in answer.document]


def assert_calls_differ(served):
    """Without which the equal texts of the other tests would show little."""
    texts, model = served.texts, served.model
    names = {*model.prompts, "penalty", "seed 7", "seed 8", *model.further_calls}
    names.discard("without a number")
    assert len({texts[name][0] for name in names}) == len(names)
    lengths = [len(texts["short"][0]), len(texts[model.prompts[0]][0])]
    if "without a number" in texts:
        lengths.append(len(texts["without a number"][0]))
    assert lengths == sorted(set(lengths))


# FLAN-T5-XXL: djl_python.fastertransformer of 0.21.0.


def test_flan_t5_xxl_answers_a_request_over_a_stand_in_for_fastertransformer(flan_t5_xxl):
    assert_calls_differ(flan_t5_xxl)
    assert flan_t5_xxl.server.ping().status == 200
    assert flan_t5_xxl.weights_were_copied()
    answer = flan_t5_xxl.server.post({"inputs": TASKS[0]})
    assert (answer.status, answer.document) == (200, flan_t5_xxl.texts["without a number"])
    assert answer.content_type is None


def test_flan_t5_xxl_answers_four_tasks_at_once_over_a_stand_in_for_fastertransformer(flan_t5_xxl):
    before = len(flan_t5_xxl.server.generated_for())
    answer = flan_t5_xxl.server.answer(body(*TASKS, max_seq_len=20))
    assert answer == (200, flan_t5_xxl.texts["four"])
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
    answer = flan_t5_xxl.server.answer(body(task, **parameters))
    assert answer == (200, flan_t5_xxl.texts[expected])


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
    server = flan_t5_xxl.server
    failure = {"code": 424, "message": "prediction failure", "error": reason}
    assert server.answer(bad) == (424, failure)
    after = server.answer(body(TASKS[0], max_seq_len=7))
    assert after == (200, flan_t5_xxl.texts["short"])
    assert server.log.count(WORKER_STARTED) == 1


# FLAN-UL2, where our handler calls FasterTransformer inside Triton, and GPT-J.


def test_our_handler_answers_a_request(ours):
    assert_calls_differ(ours)
    assert ours.server.ping().status == 200
    assert ours.weights_were_copied()
    assert ours.model is T5 or "Setting accelerator to CPU" in ours.server.log
    # 20 tokens are what it generates where a request does not say.
    prompt = ours.model.prompts[0]
    assert generated(ours.server.post({"inputs": prompt})) == ours.texts[prompt]


def test_our_handler_answers_four_texts_at_once(ours):
    before = len(ours.server.generated_for())
    texts = generated(ours.server.post(body(*ours.model.prompts)))
    if ours.model is GPT_J:
        assert texts == ours.texts["four"]
        return
    assert texts == [ours.texts[task][0] for task in TASKS]
    # In Triton each prompt has values of its own, so the stand-in computes them one by one.
    assert ours.server.generated_since(before, len(TASKS)) == [[task] for task in TASKS]


def test_our_handler_answers_requests_together(ours):
    *answers, refused = ours.server.post_together(*map(body, ours.model.prompts), {"inputs": 3})
    assert [generated(each) for each in answers] == [
        ours.texts[each] for each in ours.model.prompts
    ]
    assert (refused.status, refused.document["error"]["code"]) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"max_new_tokens": 7}, "short"),
        ({"repetition_penalty": 4.0}, "penalty"),
        ({"do_sample": True, "seed": 7, **SAMPLING}, "seed 7"),
        ({"do_sample": True, "seed": 8, **SAMPLING}, "seed 8"),
    ],
)
def test_our_handler_honours_parameters(ours, parameters, expected):
    prompt = ours.model.prompts[0] if expected == "short" else ours.model.varied
    assert generated(ours.server.post(body(prompt, **parameters))) == ours.texts[expected]


# The sample model with our handler on DeepSpeed itself, on every server.


@pytest.fixture(scope="module")
def deepspeed_itself(home, aws_url, tmp_path_factory):
    servers.require("torch", "transformers", "deepspeed")
    servers.put_sample(aws_url, SAMPLE_DIGEST)
    config = servers.config_for(
        home, "deepspeed", max_batch_size=4, max_batch_delay_milliseconds=1000
    )
    files = servers.package_for(config, SAMPLE_DIGEST)
    assert "model.py" in files
    with servers.started(home, tmp_path_factory.mktemp("djl"), files, aws_url=aws_url) as server:
        yield server.wait_until_ready()


def test_deepspeed_itself_answers_requests_alone_and_together(deepspeed_itself):
    """What each gets depends on no other, in whichever batches they meet."""
    bodies = [body(prompt, max_new_tokens=12) for prompt in COMPLETIONS]
    expected = [[completion] for completion in COMPLETIONS.values()]
    assert [generated(deepspeed_itself.post(each)) for each in bodies] == expected
    *answers, refused = deepspeed_itself.post_together(*bodies, {"inputs": 3})
    assert [generated(answer) for answer in answers] == expected
    assert refused.document["error"]["code"] == "invalid_request"
    assert "cpu" in deepspeed_itself.log
