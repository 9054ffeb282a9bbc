"""`slipway invoke`: one request, its answer, or a report of what went wrong."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slipway.errors import UserError
from slipway.operations.invoke.realtime import (
    MAX_BODY_BYTES,
    Answer,
    Request,
    invoke,
    invoke_stream,
)
from tests.support.accounts import access_to
from tests.support.slipway_stack import NAME, SlipwayStack, slipway_stack
from tests.support.waiting import eventually

LOOK = "Look at its log with `slipway status autoscaling --env local`."


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlipwayStack]:
    directory = tmp_path_factory.mktemp("invoke")
    with slipway_stack(directory, time_scale=0.02, response_timeout_seconds=2) as stack:
        assert stack.create("ok") == "CREATE_COMPLETE"
        yield stack


@pytest.fixture
def stack(deployed: SlipwayStack) -> SlipwayStack:
    """The deployment, which answers again where another test ended its container."""
    eventually(deployed.invoke_or_none)
    return deployed


def ask(stack: SlipwayStack, body: bytes, **more: Any) -> Answer:
    return invoke(request(body, **more), stack.access)


def request(body: bytes, *, endpoint_name: str = NAME, variant: str | None = None) -> Request:
    return Request(endpoint_name, body, "text/plain", "*/*", variant)


def refused(stack: SlipwayStack, body: bytes, **more: Any) -> tuple[str, str]:
    with pytest.raises(UserError) as caught:
        ask(stack, body, **more)
    (problem,) = caught.value.problems
    return problem.message, problem.remedy


def test_an_answer_with_its_latency_and_variant(stack: SlipwayStack) -> None:
    answer = ask(stack, b"sleep 0.2", variant="AllTraffic")
    assert answer.body == b"slept"
    assert answer.content_type == "text/x-stand-in"
    assert answer.variant == "AllTraffic"
    assert 0.2 < answer.latency_seconds < 5
    assert answer.request_id


def test_the_parts_of_a_stream_are_shown_as_they_arrive(
    stack: SlipwayStack, tmp_path: Path
) -> None:
    shown: dict[bytes, float] = {}
    begun = time.perf_counter()

    def show(part: bytes) -> None:
        shown[part] = time.perf_counter() - begun
        (tmp_path / part.decode()).touch()

    # The container writes no part before the one before it is shown.
    body = f"stream one until={tmp_path}/one two until={tmp_path}/two three end"
    streamed = invoke_stream(request(body.encode()), stack.access, show=show)
    assert streamed.answer.body == b"onetwothree"
    assert list(shown) == [b"one", b"two", b"three"]
    assert streamed.parts == 3
    assert streamed.answer.content_type == "text/event-stream"
    assert 0 < streamed.first_part_seconds < shown[b"one"] < streamed.answer.latency_seconds


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"error 400 no such field", "the model refused the request (400): no such field"),
        (
            b"stream one break",
            f"the answer of {NAME} broke off: An exception occurred while sending request to model",
        ),
    ],
)
def test_what_goes_wrong_with_a_stream(stack: SlipwayStack, body: bytes, message: str) -> None:
    with pytest.raises(UserError) as caught:
        invoke_stream(request(body), stack.access, show=lambda _: None)
    (problem,) = caught.value.problems
    assert problem.message.startswith(message)
    assert problem.remedy == LOOK


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"error 400 no such field", "the model refused the request (400): no such field"),
        (b'error 500 {"error":\n "out of memory"}',
         'the model failed (500): out of memory'),
        (b'error 500 {"error":\n {"code": 7}}',
         'the model failed (500): {"error": {"code": 7}}'),
        (b"sleep 5", "the model failed (no status): Your invocation timed out while waiting"),
        (b"exit", "InternalFailure: An exception occurred while sending request to model."),
    ],
)  # fmt: skip
def test_what_the_container_does_wrong(stack: SlipwayStack, body: bytes, message: str) -> None:
    found, remedy = refused(stack, body)
    assert found.startswith(message)
    assert remedy == LOOK


def test_a_request_that_is_too_large_is_not_sent(stack: SlipwayStack) -> None:
    found, _ = refused(stack, b"x" * (MAX_BODY_BYTES + 1))
    assert found == "the request is 6,291,457 bytes; SageMaker takes at most 6,291,456"


def test_a_name_that_is_not_there(stack: SlipwayStack) -> None:
    with pytest.raises(UserError) as caught:
        invoke(request(b"x", endpoint_name="other-local"), stack.access)
    (problem,) = caught.value.problems
    assert problem.message == "Endpoint other-local of account 123456789012 not found."
    assert problem.remedy == "`slipway status other --env local` shows the deployment."


def test_nobody_answers() -> None:
    nobody = access_to("http://127.0.0.1:9")
    with pytest.raises(UserError) as caught:
        invoke(request(b"x"), nobody)
    assert caught.value.problems[0].message.startswith(
        f"no answer from {NAME}: Could not connect to the endpoint URL"
    )
