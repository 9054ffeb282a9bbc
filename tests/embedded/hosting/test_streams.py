"""InvokeEndpointWithResponseStream, read by boto3."""

import contextlib
from collections.abc import Generator
from typing import Any

import pytest
from botocore.exceptions import ClientError, EventStreamError

from tests.support.waiting import eventually


@pytest.fixture(scope="module")
def endpoint(account: Any) -> str:
    return account.endpoint()


def opened(account: Any, name: str, body: bytes, **more: Any) -> dict[str, Any]:
    return account.runtime.invoke_endpoint_with_response_stream(
        EndpointName=name, Body=body, **more
    )


def parts(answer: dict[str, Any]) -> Generator[bytes, None, None]:
    # botocore leaves a stream that broke open.
    with contextlib.closing(answer["Body"]) as stream:
        for event in stream:
            yield event["PayloadPart"]["Bytes"]


def test_parts_arrive_as_the_container_writes_them(account, endpoint, tmp_path):
    arrived = tmp_path / "arrived"
    answer = opened(account, endpoint, f"stream one until={arrived} two three end".encode())
    assert answer["InvokedProductionVariant"] == "AllTraffic"
    assert answer["ContentType"] == "text/event-stream"
    stream = parts(answer)
    # The container writes no second part before the first has arrived here.
    assert next(stream) == b"one"
    arrived.touch()
    assert b"".join(stream) == b"twothree"


def test_headers_and_any_bytes_reach_the_container(account, endpoint):
    answer = opened(account, endpoint, b"headers", Accept="text/x-wanted", CustomAttributes="a=1")
    assert answer["CustomAttributes"] == "seen a=1"
    assert b'"accept": "text/x-wanted"' in b"".join(parts(answer))
    body = bytes(range(256)) * 20_000
    assert b"".join(parts(opened(account, endpoint, body))) == body


def test_an_error_before_the_stream_is_that_of_invoke_endpoint(account, endpoint):
    with pytest.raises(ClientError) as caught:
        opened(account, endpoint, b"error 400 too long")
    response = caught.value.response
    assert response["Error"]["Code"] == "ModelError"
    assert (response["OriginalStatusCode"], response["OriginalMessage"]) == (400, "too long")


@pytest.mark.parametrize("body", [b"stream one break", b"cut"])
def test_a_container_that_breaks_off(account, endpoint, body):
    with pytest.raises(EventStreamError, match="while sending request to model") as caught:
        list(parts(opened(account, endpoint, body)))
    assert caught.value.response["Error"]["Code"] == "ModelStreamError"


def test_a_container_that_stops_sending(hurried):
    stream = parts(opened(hurried, hurried.endpoint(), b"stream one hang"))
    assert next(stream) == b"one"
    with pytest.raises(EventStreamError, match="timed out while waiting for a response"):
        next(stream)


def test_a_client_that_goes_away_tells_the_container(account, endpoint):
    stream = parts(opened(account, endpoint, b"stream " + b"part " * 40 + b"end"))
    next(stream)
    stream.close()
    eventually(lambda: "nobody reads any more" in account.logged(endpoint))
    # The next request is not in its way.
    assert account.invoke(endpoint) == "x"
