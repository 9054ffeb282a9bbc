"""Our handler under the real DJL Serving, over HTTP; the engines and their libraries are stand-ins.

Packages are those that `slipway publish` sends, weights are copied from an S3 as in the container.
"""

import re

import pytest

from slipway import java_properties
from slipway.planning.families.lmi.setup import ordered
from tests.containers.lmi.bad_bodies import REFUSED_ALIKE
from tests.containers.lmi.real.packages import SLEEPER
from tests.containers.lmi.real.servers import BATCHES_OF_FOUR, ROOT, WORKER_STARTED
from tests.support.waiting import eventually
from tools.verify_aws.life import TEXT

pytestmark = pytest.mark.djl_serving

# What the bad bodies of the other tests are beyond.
LIMITS = {"max_new_tokens": 42}
ABC = {"inputs": "abc", "parameters": {"max_new_tokens": 3}}


@pytest.fixture(scope="module", params=["deepspeed", "fastertransformer"])
def one_by_one(request, serve_over_stand_ins):
    return serve_over_stand_ins(request.param, options=LIMITS)


@pytest.fixture(scope="module", params=["deepspeed", "fastertransformer"])
def in_batches(request, serve_over_stand_ins):
    return serve_over_stand_ins(request.param, options=LIMITS, **BATCHES_OF_FOUR)


def generated(*texts):
    return [{"generated_text": text} for text in texts]


def test_a_request_is_answered_over_a_stand_in(one_by_one):
    assert one_by_one.ping().status == 200
    answer = one_by_one.post(
        {"inputs": ["abc", "caf\u00e9 x"], "parameters": {"max_new_tokens": 2}}
    )
    assert (answer.status, answer.document) == (200, generated("de", "yz"))
    assert answer.content_type == "application/json"


def test_weights_are_copied_from_s3_over_a_stand_in(one_by_one):
    (path,) = re.findall(r"stand-in: weights in (\S+)", one_by_one.log)
    assert "/cache/" in path
    assert "S3 url found, start downloading from s3://artifacts/artifacts/cdcd" in one_by_one.log


def test_bad_bodies_are_refused_over_a_stand_in(one_by_one):
    for body in REFUSED_ALIKE:
        answer = one_by_one.post(body)
        assert (answer.status, answer.content_type) == (400, "application/json"), body
        assert answer.document["error"]["code"] == "invalid_request"
    assert one_by_one.post(ABC).document == generated("def")
    assert one_by_one.log.count(WORKER_STARTED) == 1


def test_a_failing_engine_is_said_to_fail_over_a_stand_in(one_by_one):
    message = "The model failed to compute an answer."
    assert one_by_one.answer({"inputs": "out of memory!"}) == (
        500,
        {"error": {"code": "model_failure", "message": message}},
    )
    assert one_by_one.post(ABC).document == generated("def")


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/octet-stream"])
def test_the_content_type_is_not_needed_over_a_stand_in(one_by_one, content_type):
    answer = one_by_one.post(ABC, content_type)
    assert (answer.status, answer.document) == (200, generated("def"))


def test_a_form_is_refused_over_a_stand_in(one_by_one):
    """The server hands no body of one over."""
    form = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n--x--\r\n'
    answer = one_by_one.post(form, "multipart/form-data; boundary=x")
    assert answer.status == 400, answer.body
    assert one_by_one.post(ABC).document == generated("def")


def test_requests_of_a_batch_get_their_own_answers_over_a_stand_in(in_batches):
    prompts = ["abc", "x", "mnop", "yz"]
    bodies = [{"inputs": prompt, "parameters": {"max_new_tokens": 2}} for prompt in prompts]
    before = len(in_batches.generated_for())
    answers = in_batches.post_together(*bodies)
    assert [(answer.status, answer.document) for answer in answers] == [
        (200, generated(text)) for text in ("de", "yz", "qr", "ab")
    ]
    calls = in_batches.generated_since(before)
    assert [sorted(call) for call in calls] == [sorted(prompts)]


def test_a_bad_request_fails_no_other_of_its_batch_over_a_stand_in(in_batches):
    """The server has one status for a batch: the bad one is told by what it gets."""
    for at in range(0, len(REFUSED_ALIKE), 3):
        bad = REFUSED_ALIKE[at : at + 3]
        good = [ABC] * (4 - len(bad))
        before = len(in_batches.generated_for())
        answers = in_batches.post_together(*good, *bad)
        for answer in answers[: len(good)]:
            assert (answer.status, answer.document) == (200, generated("def"))
        for body, answer in zip(bad, answers[len(good) :], strict=True):
            assert answer.status == 200, body
            assert answer.document["error"]["code"] == "invalid_request"
        assert in_batches.generated_since(before) == [["abc"] * len(good)]
    assert in_batches.log.count(WORKER_STARTED) == 1


@pytest.mark.parametrize("retry_threshold", [None, 10])
def test_a_call_that_takes_too_long_ends(home, start, retry_threshold):
    """From 0.30 on, and without `retry_threshold`, one such call is the end of the model."""
    properties = {"engine": "Python", "option.predict_timeout": "2"}
    if retry_threshold is not None:
        properties["retry_threshold"] = str(retry_threshold)
    files = {"model.py": SLEEPER, "serving.properties": java_properties.render(properties)}
    server = start(files).wait_until_ready()
    assert server.post({"seconds": 0}).document == {"slept": 0}
    late = server.post({"seconds": 60})
    assert (late.status, late.document["type"]) == (503, "WlmException")
    if ordered(home.version) >= (0, 30) and retry_threshold is None:
        assert eventually(lambda: server.ping().status == 500)
        assert server.post({"seconds": 0}).document["message"] == "Model is not ready: model"
    else:
        assert eventually(lambda: server.post({"seconds": 0}).status == 200)
        assert server.ping().status == 200


# The files that `make verify-aws` publishes, on the server of the image's version.
of_verify_aws = pytest.mark.djl_version(at_least="0.36.0", at_most="0.36.0")


@pytest.fixture
def files():
    model = ROOT / "tools" / "verify_aws" / "model"
    return {path.name: path.read_bytes() for path in model.iterdir() if path.is_file()}


@of_verify_aws
def test_the_model_of_verify_aws_answers_and_fails_on_purpose(start, files):
    server = start(files, OPT_OUT_TRACKING="true").wait_until_ready()
    answer = server.post({"inputs": TEXT})
    assert (answer.status, answer.document) == (200, {"reversed": "yawpils"})
    assert answer.content_type == "application/json"
    assert server.post({"inputs": "fail"}).status == 500
    assert server.post({"inputs": TEXT}).status == 200


@of_verify_aws
def test_the_model_of_verify_aws_cannot_be_loaded_on_purpose(start, files):
    log = start(files, OPT_OUT_TRACKING="true", VERIFY_AWS_FAULT="start").wait_for_end()
    assert "the model fails on purpose" in log
