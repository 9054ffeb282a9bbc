"""InvokeEndpointWithResponseStream, read by boto3."""

import contextlib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EventStreamError

from tests.support.waiting import eventually


@pytest.fixture(scope="module")
def endpoint(account: Any) -> str:
    name: str = account.endpoint()
    return name


def parts(answer: dict[str, Any]) -> Generator[bytes, None, None]:
    # botocore leaves a stream that broke open.
    with contextlib.closing(answer["Body"]) as stream:
        for event in stream:
            yield event["PayloadPart"]["Bytes"]


def test_parts_arrive_as_the_container_writes_them(
    account: Any, endpoint: str, tmp_path: Path
) -> None:
    arrived = tmp_path / "arrived"
    answer = account.runtime.invoke_endpoint_with_response_stream(
        EndpointName=endpoint, Body=f"stream one until={arrived} two three end".encode()
    )
    assert answer["InvokedProductionVariant"] == "AllTraffic"
    assert answer["ContentType"] == "text/event-stream"
    stream = parts(answer)
    # The container writes no second part before the first has arrived here.
    assert next(stream) == b"one"
    arrived.touch()
    assert b"".join(stream) == b"twothree"


def test_what_is_asked_reaches_the_container(account: Any, endpoint: str) -> None:
    answer = account.runtime.invoke_endpoint_with_response_stream(
        EndpointName=endpoint, Body=b"headers", Accept="text/x-wanted", CustomAttributes="trace=1"
    )
    assert answer["CustomAttributes"] == "seen trace=1"
    assert b'"accept": "text/x-wanted"' in b"".join(parts(answer))


def test_any_bytes_and_many_of_them(account: Any, endpoint: str) -> None:
    body = bytes(range(256)) * 20_000
    answer = account.runtime.invoke_endpoint_with_response_stream(EndpointName=endpoint, Body=body)
    assert b"".join(parts(answer)) == body


def test_an_error_before_the_stream_is_that_of_invoke_endpoint(account: Any, endpoint: str) -> None:
    with pytest.raises(ClientError) as caught:
        account.runtime.invoke_endpoint_with_response_stream(
            EndpointName=endpoint, Body=b"error 400 too long"
        )
    response: Any = caught.value.response
    assert response["Error"]["Code"] == "ModelError"
    assert (response["OriginalStatusCode"], response["OriginalMessage"]) == (400, "too long")


@pytest.mark.parametrize("body", [b"stream one break", b"cut"])
def test_a_container_that_breaks_off(account: Any, endpoint: str, body: bytes) -> None:
    answer = account.runtime.invoke_endpoint_with_response_stream(EndpointName=endpoint, Body=body)
    received = []
    with pytest.raises(EventStreamError) as caught:
        received += list(parts(answer))
    assert caught.value.response["Error"]["Code"] == "ModelStreamError"
    assert "An exception occurred while sending request to model" in str(caught.value)


def test_a_container_that_stops_sending(hurried: Any) -> None:
    name = hurried.endpoint()
    answer = hurried.runtime.invoke_endpoint_with_response_stream(
        EndpointName=name, Body=b"stream one hang"
    )
    stream = parts(answer)
    assert next(stream) == b"one"
    with pytest.raises(EventStreamError, match="timed out while waiting for a response"):
        next(stream)


def test_a_client_that_goes_away_tells_the_container(account: Any, endpoint: str) -> None:
    body = b"stream " + b"part " * 40 + b"end"
    answer = account.runtime.invoke_endpoint_with_response_stream(EndpointName=endpoint, Body=body)
    stream = parts(answer)
    next(stream)
    stream.close()
    group = f"/aws/sagemaker/Endpoints/{endpoint}"

    def told() -> bool:
        events = account.logs.filter_log_events(logGroupName=group)["events"]
        return any(event["message"] == "nobody reads any more" for event in events)

    eventually(told)
    # The next request is not in its way.
    assert account.invoke(endpoint) == "x"
