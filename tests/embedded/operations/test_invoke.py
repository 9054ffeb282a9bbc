"""`slipway invoke`: one request, its answer, or a report of what went wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from slipway.access import Access
from slipway.errors import UserError
from slipway.operations.invoke import MAX_BODY_BYTES, Answer, invoke
from tests.embedded.slipway_stack import NAME, SlipwayStack, slipway_stack

LOOK = "Look at its log with `slipway status autoscaling --env local`."


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlipwayStack]:
    with slipway_stack(tmp_path_factory.mktemp("invoke"), time_scale=0.02) as stack:
        assert stack.create("ok") == "CREATE_COMPLETE"
        yield stack


def ask(stack: SlipwayStack, body: bytes, **more: Any) -> Answer:
    options = {"content_type": "text/plain", "accept": "*/*", "variant": None, **more}
    return invoke(NAME, body, stack.access, **options)


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


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"error 400 no such field", "the model refused the request (400): no such field"),
        (b'error 500 {"error":\n "out of memory"}',
         'the model failed (500): {"error": "out of memory"}'),
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
        invoke(
            "other-local", b"{}", stack.access,
            content_type="application/json", accept="*/*", variant=None,
        )  # fmt: skip
    (problem,) = caught.value.problems
    assert problem.message == "Endpoint other-local of account 123456789012 not found."
    assert problem.remedy == "`slipway status other --env local` says what there is."


def test_nobody_answers() -> None:
    nobody = Access(
        "us-east-1",
        {
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "x",
        },
    )
    with pytest.raises(UserError) as caught:
        invoke(
            NAME, b"{}", nobody,
            content_type="application/json", accept="*/*", variant=None,
        )  # fmt: skip
    assert caught.value.problems[0].message.startswith(
        f"no answer from {NAME}: Could not connect to the endpoint URL"
    )
