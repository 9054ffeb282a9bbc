"""The shipped config for DeepSpeed answers, on the real server of the version it names.

The package is what `slipway publish` sends, the weights, of a small GPT-J with random numbers, are
copied from S3, and the library is DeepSpeed itself. What comes back is held against transformers
alone. The config has no script, so that in the image the server's own handler answers,
`djl_python.deepspeed`: that one sends every prompt to a GPU by its number, whatever there is. Here
ours answers in its place, which is one more change than a CPU's.

It needs PyTorch, transformers and DeepSpeed in the interpreter of the handlers.
"""

import pytest

from tests.containers.lmi.real import servers
from tests.containers.lmi.real.references import Call, reference
from tests.containers.lmi.real.shipped import DIGEST, answering, config_on_cpu

pytestmark = [pytest.mark.djl_serving, pytest.mark.torch, pytest.mark.timeout(300)]

NAME = "gpt-j-6b"
# The server counts GPUs before it starts another engine than Python, and DeepSpeed has no fp16 on a
# CPU without instructions for it.
ON_CPU = {"engine": "Python", "script": servers.HANDLER, "dtype": "fp32"}
PROMPTS = (
    "The maximum number of",
    "You can",
    "A list of the tags that are",
    "An Amazon Resource Name",
)
SAMPLING = {"temperature": 2.0, "top_k": 9, "top_p": 0.75}


def call(*prompts, **arguments):
    return Call(prompts, "float32", {"do_sample": False, **arguments})


CALLS = {
    **{prompt: call(prompt, max_new_tokens=20) for prompt in PROMPTS},
    "four": call(*PROMPTS, max_new_tokens=20),
    "short": call(PROMPTS[0], max_new_tokens=5),
    "penalty": call(PROMPTS[0], max_new_tokens=20, repetition_penalty=4.0),
    "seed 7": call(PROMPTS[0], max_new_tokens=20, seed=7, **SAMPLING, do_sample=True),
    "seed 8": call(PROMPTS[0], max_new_tokens=20, seed=8, **SAMPLING, do_sample=True),
}


@pytest.fixture(scope="module")
def gpt_j_6b(aws_url, tmp_path_factory):
    """The server, and what transformers generates for each of `CALLS`."""
    config = config_on_cpu(NAME, tmp_path_factory.mktemp("project"), **ON_CPU)
    home = servers.home_of(config.serving.version)
    servers.require("torch", "transformers", "deepspeed")
    expected = reference("gptj", tmp_path_factory.mktemp("gptj"), CALLS)
    with answering(
        home,
        lambda: tmp_path_factory.mktemp("djl"),
        config,
        expected.weights,
        aws_url=aws_url,
    ) as server:
        yield server, dict(expected.texts)


def generated(answer):
    assert (answer.status, answer.content_type) == (200, "application/json"), answer
    return [entry["generated_text"] for entry in answer.document]


def test_gpt_j_6b_answers_a_request_with_our_handler(gpt_j_6b):
    server, texts = gpt_j_6b
    # Without which the equal texts of the other tests would show little.
    assert len({texts[name][0] for name in CALLS}) == len(CALLS) - 1  # "four" starts as one does
    assert server.ping().status == 200
    address = f"s3://{servers.BUCKET}/artifacts/{DIGEST}/files/"
    assert f"S3 url found, start downloading from {address}" in server.log
    assert "Setting accelerator to CPU" in server.log
    # 20 tokens are what it generates where a request does not say.
    assert generated(server.post({"inputs": PROMPTS[0]})) == texts[PROMPTS[0]]


def test_gpt_j_6b_answers_four_texts_at_once_with_our_handler(gpt_j_6b):
    server, texts = gpt_j_6b
    assert generated(server.post({"inputs": list(PROMPTS)})) == texts["four"]


def test_gpt_j_6b_answers_requests_together_with_our_handler(gpt_j_6b):
    server, texts = gpt_j_6b
    *answers, refused = server.post_together(
        *({"inputs": prompt} for prompt in PROMPTS), {"inputs": 3}
    )
    assert [generated(answer) for answer in answers] == [texts[prompt] for prompt in PROMPTS]
    assert (refused.status, refused.document["error"]["code"]) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"max_new_tokens": 5}, "short"),
        ({"repetition_penalty": 4.0}, "penalty"),
        ({"do_sample": True, "seed": 7, **SAMPLING}, "seed 7"),
        ({"do_sample": True, "seed": 8, **SAMPLING}, "seed 8"),
    ],
)
def test_gpt_j_6b_honours_parameters_with_our_handler(gpt_j_6b, parameters, expected):
    server, texts = gpt_j_6b
    answer = server.post({"inputs": PROMPTS[0], "parameters": parameters})
    assert generated(answer) == texts[expected]
