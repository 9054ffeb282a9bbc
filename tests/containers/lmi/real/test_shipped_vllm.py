"""The shipped packages of vLLM on the real DJL Serving and vLLM itself, on the CPU.

Nothing is a stand-in but the accelerator, and the sample model for Qwen2.5. `make vllm` makes the
interpreter: a build of vLLM 0.17 for CPUs, which is the version that the server's sources name.
AWS's image of today, 0.36.0-lmi27, has vLLM 0.23 and a later `djl_python`: neither was run.

What a CPU and the sample need otherwise is overridden for the environment `local`, as a user does.
"""

import functools
from contextlib import ExitStack

import pytest

from demo import copy_project
from slipway.embedded_aws import control
from slipway.embedded_aws.hosting.families.lmi.djl_serving import tag_environment
from slipway.errors import UserError
from tests.containers.lmi.real import servers
from tests.containers.lmi.real.sample import BUCKET, COMPLETIONS, RESULTS, greedy
from tests.containers.lmi.real.shipped import Served, config_on_cpu
from tests.support.deployments import lmi
from tests.support.page_runs import run_page

pytestmark = [pytest.mark.djl_serving, pytest.mark.vllm, pytest.mark.timeout(600)]

VERSION = "0.36.0"
SHIPPED = ["qwen2-7b-vllm", "qwen2-7b-two-gpus"]
PYTHON = servers.ROOT / "build" / "vllm" / "bin" / "python"
DIGEST = "ed" * 32
# Imports of vLLM and torch, in the worker and in the engine's process: 45 to 90 seconds were seen.
START_SECONDS = 400.0

# The sample is a GPT-2.
SAMPLE_MODEL = {
    "model": {
        "family": "gpt2",
        "parameters": 1112640,
        "layers": 5,
        "hidden_size": 160,
        "attention_heads": 5,
        "key_value_heads": 5,
    },
    "artifacts": {"size_gb": 0.004},
}
ON_A_CPU = {
    # In bf16 requests are not answered on a CPU without AVX512_BF16.
    "dtype": "fp32",
    # The sample has 128 positions.
    "max_input_tokens": 96,
    "max_new_tokens": 32,
    # What torch compiles for a CPU takes longer than the tests, and needs a C++ compiler.
    "options": {"max_model_len": 128, "enforce_eager": True},
    "environment": {
        # On a CPU the server would start a second vLLM for requests that come together.
        "SERVING_MAX_WORKERS": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "TORCHDYNAMO_DISABLE": "1",
    },
}
WITH_THE_ROLLING_BATCH = ("  dtype: bf16\n", "  dtype: bf16\n  rolling_batch: vllm\n")

SHORT = {"inputs": BUCKET, "parameters": {"max_new_tokens": 2, "do_sample": False}}
END_OF_TEXT = "<|endoftext|>"


@pytest.fixture(scope="module")
def serve(aws_url, tmp_path_factory):
    home = servers.home_of(VERSION)
    servers.put_sample(aws_url, DIGEST)
    # What vLLM finds out about a model's class, which takes it a process, for all servers here.
    cache = tmp_path_factory.mktemp("vllm-cache")
    with ExitStack() as stack:

        @functools.cache
        def begin(name, *edits, added=b""):
            directory = tmp_path_factory.mktemp("project")
            config = config_on_cpu(name, directory, *edits, model=SAMPLE_MODEL, **ON_A_CPU)
            files = servers.package_for(config, DIGEST)
            assert list(files) == ["serving.properties"]
            files["serving.properties"] += added
            environment = {
                **tag_environment(servers.image_tag(config)),
                **lmi(config).container_environment(),
                "PYTHON_EXECUTABLE": str(PYTHON),
                "VLLM_CACHE_ROOT": str(cache),
            }
            return stack.enter_context(
                servers.started(
                    home, tmp_path_factory.mktemp("djl"), files, aws_url=aws_url, **environment
                )
            ).wait_until_ready(START_SECONDS)

        yield begin


def with_the_rolling_batch(serve):
    """`djl_python.huggingface` drives vLLM's LLMEngine; no shipped config says so."""
    return Served(serve("qwen2-7b-vllm", WITH_THE_ROLLING_BATCH), END_OF_TEXT)


def with_the_default_handler(serve, name):
    """`djl_python.lmi_vllm.vllm_async_service`, which the image takes by itself."""
    return Served(serve(name), "")


@pytest.fixture
def rolling(serve):
    return with_the_rolling_batch(serve)


@pytest.fixture(params=SHIPPED)
def default(request, serve):
    return with_the_default_handler(serve, request.param)


@pytest.fixture(params=[*SHIPPED, None], ids=lambda name: name or "rolling batch")
def either(request, serve):
    if request.param is None:
        return with_the_rolling_batch(serve)
    return with_the_default_handler(serve, request.param)


def test_the_handler_of_the_rolling_batch_is_the_one_of_the_plan(rolling):
    assert "'--recommended-entry-point', 'djl_python.huggingface'" in rolling.server.log
    assert "'--no-async-mode'" in rolling.server.log
    assert "rolling_batch: vllm" in rolling.server.log


def test_the_default_handler_is_the_one_of_the_plan(default):
    entry_point = "djl_python.lmi_vllm.vllm_async_service"
    assert f"'--recommended-entry-point', '{entry_point}'" in default.server.log
    assert "'--async-mode'" in default.server.log


def settings_of_vllm(server):
    """The line in which vLLM says what it runs."""
    (line,) = [line for line in server.log.splitlines() if "Initializing a V1 LLM engine" in line]
    return line


def test_vllm_got_the_settings(either):
    line = settings_of_vllm(either.server)
    assert "/djl-serving/cache/download/" in line
    for setting in (
        "(v0.17.0)",
        "dtype=torch.float32",
        "max_seq_len=128",
        "tensor_parallel_size=1",
        "trust_remote_code=False",
        "enforce_eager=True",
        "device_config=cpu",
    ):
        assert setting in line


@pytest.mark.parametrize("prompt", COMPLETIONS)
def test_a_completion_is_the_samples(either, prompt):
    assert either.generate(prompt) == COMPLETIONS[prompt] + either.end


def test_the_number_of_new_tokens_is_kept(either):
    assert either.generate(BUCKET, max_new_tokens=2) == " name for"
    assert either.generate(BUCKET, max_new_tokens=4) == " name for the Amazon"


def test_the_prompt_is_before_the_text_where_asked_for(either):
    text = either.generate(BUCKET, return_full_text=True)
    assert text == BUCKET + COMPLETIONS[BUCKET] + either.end


def test_requests_that_come_together_get_their_own_answers(either):
    bodies = [greedy(prompt) for prompt in COMPLETIONS] * 4 + [SHORT]
    answers = either.server.post_together(*bodies)
    texts = [text + either.end for text in COMPLETIONS.values()] * 4 + [" name for"]
    assert [(answer.status, answer.document["generated_text"]) for answer in answers] == [
        (200, text) for text in texts
    ]


def test_an_answer_is_streamed_as_it_grows(either):
    lines = either.streamed(greedy(BUCKET))
    tokens = [line["token"]["text"] for line in lines]
    # On a busy machine a line has several tokens.
    assert len(tokens) > 1
    assert "".join(tokens) == COMPLETIONS[BUCKET] + either.end
    assert lines[-1]["generated_text"] == "".join(tokens)


def test_a_misspelt_parameter_is_passed_over_in_silence(either):
    assert either.generate(BUCKET, max_new_tokenz=2) == COMPLETIONS[BUCKET] + either.end


BAD = [
    (b"{", 424, "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
    (b"[]", 424, "Received payload []"),
    ({}, 424, "Request payload should be a json object specifying the 'inputs' field."),
    ({"inputs": 5}, 424, "The 'inputs' field must be a string. Received type <class 'int'>"),
    ({"inputs": [BUCKET, RESULTS]}, 424, "must be a string. Received type <class 'list'>"),
    ({"inputs": ""}, 424, "The 'inputs' field does not contain any content."),
    (greedy(BUCKET, max_new_tokens=0), 424, "exception occurred during rolling batch inference"),
    (greedy(BUCKET, max_new_tokens="x"), 424, "exception occurred during rolling batch inference"),
    (greedy(BUCKET * 60), 424, "exception occurred during rolling batch inference"),
]
BAD_FOR_THE_DEFAULT = [
    (b"{", 424, "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
    (b"[]", 424, "Input parsing failed: list indices must be integers or slices, not str"),
    ({}, 424, "invalid payload. must contain prompt, inputs, or messages"),
    # The reason has several lines, which the server cannot put into its own answer's first one.
    ({"inputs": 5}, 500, "reasonPhrase contains one of the following prohibited characters"),
    ({"inputs": ""}, 500, "reasonPhrase contains one of the following prohibited characters"),
    (greedy(BUCKET, max_new_tokens="x"), 500, "Input should be a valid integer"),
    (greedy(BUCKET, max_new_tokens=0), 424, "Async Inference Failure"),
    (greedy(BUCKET * 60), 424, "Async Inference Failure"),
    # The other handler ends such a text where the model's positions end.
    (greedy(BUCKET, max_new_tokens=1000), 424, "Async Inference Failure"),
]


def test_bad_bodies_are_refused_and_the_worker_goes_on(rolling):
    rolling.refuses(BAD)


def test_bad_bodies_are_refused_by_the_default_handler(default):
    default.refuses(BAD_FOR_THE_DEFAULT)


def test_a_bad_request_ends_all_answers_with_the_rolling_batch(serve):
    """Those under way, and those that come next: vLLM goes on with the long answer, of which the
    handler has lost track (`VLLMRollingBatch.reset`), and with those that fail by it.
    """
    # A server of its own: it is of no use to other tests from then on.
    server = serve("qwen2-7b-vllm", WITH_THE_ROLLING_BATCH, added=b"# fails\n")
    assert server.post(SHORT).status == 200
    lines = Served(server).while_another_is_answered(greedy(BUCKET * 60))
    assert 1 < len(lines) < 110
    failure = {"error": "exception occurred during rolling batch inference", "code": 424}
    assert lines[-1] == failure
    for _ in range(20):
        answer = server.post(SHORT)
        assert (answer.status, answer.document) == (424, failure)
    assert server.ping().status == 200


def test_a_bad_request_ends_no_other_with_the_default_handler(default):
    alone = default.generate(BUCKET, max_new_tokens=110, ignore_eos_token=True)
    lines = default.while_another_is_answered(greedy(BUCKET * 60))
    # On a busy machine a line has several tokens.
    assert lines[-1]["generated_text"] == "".join(line["token"]["text"] for line in lines) == alone
    assert alone.startswith(COMPLETIONS[BUCKET])


def test_a_chat_is_beyond_the_handler_of_the_rolling_batch(rolling):
    """It imports a module that vLLM 0.17 has no more; the later `djl_python` of lmi27 does not."""
    answer = rolling.server.post({"messages": [{"role": "user", "content": BUCKET}]})
    assert answer.status == 424
    assert "No module named 'vllm.entrypoints.openai.protocol'" in answer.document["error"]


def test_the_default_handler_speaks_as_openai_does(default):
    answer = default.server.post({"prompt": BUCKET, "max_tokens": 16, "temperature": 0})
    assert answer.status == 200
    (choice,) = answer.document["choices"]
    assert (choice["text"], choice["finish_reason"]) == (COMPLETIONS[BUCKET], "stop")
    # The sample is no chat model: it has no template for one.
    answer = default.server.post({"messages": [{"role": "user", "content": BUCKET}]})
    assert answer.status == 500
    assert "you must provide a chat template" in answer.document["error"]


def test_an_option_that_nothing_knows_is_dropped_in_silence(serve):
    """Slipway refuses it."""
    misspelt = ("    max_model_len: 4096\n", "    max_modell_len: 16\n")
    with pytest.raises(UserError, match="reads no option 'max_modell_len'"):
        serve("qwen2-7b-vllm", misspelt)
    server = serve("qwen2-7b-vllm", added=b"option.max_modell_len=16\n")
    assert "option.max_modell_len: 16" in server.log
    assert server.post(SHORT).document["generated_text"] == " name for"
    assert "max_seq_len=128" in settings_of_vllm(server)


@pytest.mark.cdk
@pytest.mark.timeout(900)
def test_the_guide_of_adapters_runs_on_vllm_itself(tmp_path, monkeypatch):
    monkeypatch.setenv("DJL_SERVING_HOME", str(servers.home_of(VERSION).path))
    monkeypatch.setenv("SLIPWAY_DJL_PYTHON", str(PYTHON))
    copy_project(tmp_path)
    try:
        run_page(servers.ROOT / "docs" / "guides" / "adapters.md", tmp_path)
    finally:
        control.stop(tmp_path)
