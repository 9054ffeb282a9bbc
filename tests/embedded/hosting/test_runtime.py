"""InvokeEndpoint, and InvokeEndpointWithResponseStream, as boto3 calls them."""

import contextlib
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Generator
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError, EventStreamError

from tests.support.waiting import eventually


@pytest.fixture(scope="module")
def endpoint(account: Any) -> str:
    return account.endpoint()


def refused(call: Any, *arguments: Any, **parameters: Any) -> dict[str, Any]:
    with pytest.raises(ClientError) as caught:
        call(*arguments, **parameters)
    return caught.value.response


def metric(account: Any, endpoint: str, name: str) -> dict[str, Any]:
    found = account.metric(name, EndpointName=endpoint, VariantName="AllTraffic")
    return {"Sum": 0.0, **found}


def test_headers_reach_the_container_and_come_back(account, endpoint):
    answer = account.runtime.invoke_endpoint(
        EndpointName=endpoint,
        Body=b"headers",
        ContentType="application/x-test",
        Accept="text/x-wanted",
        CustomAttributes="trace=1",
        InferenceId="id-1",
    )
    assert answer["InvokedProductionVariant"] == "AllTraffic"
    assert answer["ContentType"] == "text/x-stand-in"
    assert answer["CustomAttributes"] == "seen trace=1"
    assert answer["ResponseMetadata"]["RequestId"]
    seen = json.loads(answer["Body"].read())
    assert seen["content-type"] == "application/x-test"
    assert seen["accept"] == "text/x-wanted"
    assert seen["x-amzn-sagemaker-inference-id"] == "id-1"
    assert "authorization" not in seen
    body = bytes(range(256)) * 20_000
    answer = account.runtime.invoke_endpoint(EndpointName=endpoint, Body=body)
    assert answer["Body"].read() == body


def test_unknown_endpoint(account):
    response = refused(account.invoke, "absent", "x")
    assert response["Error"] == {
        "Code": "ValidationError",
        "Message": "Endpoint absent of account 123456789012 not found.",
    }
    assert response["ResponseMetadata"]["HTTPStatusCode"] == 400


@pytest.mark.parametrize(("status", "kind"), [(400, "client"), (500, "server"), (503, "server")])
def test_model_error(account, endpoint, status, kind):
    with pytest.raises(account.runtime.exceptions.ModelError) as caught:
        account.invoke(endpoint, f'error {status} {{"error": "why"}}')
    response = caught.value.response
    group = f"/aws/sagemaker/Endpoints/{endpoint}"
    assert response["Error"] == {
        "Code": "ModelError",
        "Message": (
            f'Received {kind} error ({status}) from primary with message "{{"error": "why"}}". See '
            "https://us-east-1.console.aws.amazon.com/cloudwatch/home?region=us-east-1"
            f"#logEventViewer:group={group} in account 123456789012 for more information."
        ),
    }
    assert response["ResponseMetadata"]["HTTPStatusCode"] == 424
    assert response["OriginalStatusCode"] == status
    assert response["OriginalMessage"] == '{"error": "why"}'
    assert response["LogStreamArn"] == f"arn:aws:logs:us-east-1:123456789012:log-group:{group}"


def test_long_error_keeps_its_frame(account, endpoint):
    response = refused(account.invoke, endpoint, "error 500 " + "e" * 9000)
    assert len(response["Error"]["Message"]) == 2048
    assert response["Error"]["Message"].endswith("for more information.")
    assert response["OriginalMessage"] == "e" * 2048


def test_late_answer(hurried):
    name = hurried.endpoint()
    begun = time.monotonic()
    response = refused(hurried.invoke, name, "sleep 3")
    assert time.monotonic() - begun < 2.5
    assert response["OriginalStatusCode"] == 0
    assert response["OriginalMessage"] == (
        "Your invocation timed out while waiting for a response from container primary. Review "
        "the latency metrics for each container in Amazon CloudWatch, resolve the issue, and try "
        "again."
    )


def test_an_answer_that_breaks_off_is_no_answer(account, endpoint):
    response = refused(account.invoke, endpoint, "cut")
    assert response["Error"]["Code"] == "InternalFailure"
    assert "6 more expected" in response["Error"]["Message"]
    assert account.invoke(endpoint, "x") == "x"


def test_a_request_that_breaks_off_does_not_reach_the_container(account, endpoint):
    url = urlsplit(account.runtime.meta.endpoint_url)
    with socket.create_connection((url.hostname, url.port)) as connection:
        connection.sendall(
            f"POST /endpoints/{endpoint}/invocations HTTP/1.1\r\n"
            "Host: localhost\r\nContent-Length: 10\r\n\r\nhalf".encode()
        )
        connection.shutdown(socket.SHUT_WR)
        # The listener closes the connection without an answer.
        assert connection.recv(1) == b""
    assert account.invoke(endpoint, "x") == "x"


def test_container_that_dies_while_serving(account):
    name = account.endpoint()
    pid = account.invoke(name, "pid")
    response = refused(account.invoke, name, "exit")
    assert response["Error"]["Code"] == "InternalFailure"
    assert response["Error"]["Message"].startswith(
        "An exception occurred while sending request to model. Please contact customer support "
        f"regarding request {response['ResponseMetadata']['RequestId']}."
    )
    # It is started again a second later, and gets no request before its /ping answers 200. The
    # first may be refused by the port, in the moment before the exit is noticed.
    seen: list[str | None] = []

    def answers() -> bool:
        seen.append(refusal(account, name))
        return seen[-1] is None

    eventually(answers)
    down = seen.index("ServiceUnavailable")
    assert set(seen[:down]) <= {"InternalFailure"}
    assert set(seen[down:-1]) == {"ServiceUnavailable"}
    assert account.invoke(name, "pid") != pid
    eventually(lambda: metric(account, name, "InvocationModelErrors")["Sum"] == len(seen))
    # As documented, only what the model itself answered counts there.
    assert metric(account, name, "Invocation5XXErrors")["Sum"] == 0


def refusal(account: Any, name: str) -> str | None:
    try:
        account.invoke(name)
    except ClientError as error:
        return error.response["Error"]["Code"]
    return None


def test_requests_and_responses_over_the_limit(account, endpoint):
    limit = 6_291_456
    assert len(account.invoke(endpoint, "x" * limit)) == limit
    message = "HTTP content length exceeded 6291456 bytes."
    response = refused(account.invoke, endpoint, "x" * (limit + 1))
    assert response["Error"] == {"Code": "413", "Message": message}
    response = refused(account.invoke, endpoint, "large 6291457")
    assert response["OriginalMessage"] == "The response exceeds 6291456 bytes."


def test_what_is_not_emulated_is_refused(account, endpoint):
    runtime = account.runtime
    for call, parameters, feature in (
        (runtime.invoke_endpoint, {"TargetModel": "m.tar.gz"}, "multi-model endpoints"),
        (runtime.invoke_endpoint, {"SessionId": "NEW_SESSION"}, "stateful sessions"),
    ):
        response = refused(call, EndpointName=endpoint, Body=b"x", **parameters)
        assert f"does not emulate {feature}" in response["Error"]["Message"]
    response = refused(
        runtime.invoke_endpoint_async, EndpointName=endpoint, InputLocation="s3://artifacts/in"
    )
    assert "is not asynchronous" in response["Error"]["Message"]


def test_requests_are_routed_by_weight(account):
    name = account.serve(
        account.variant(account.model(mark="a "), "A", InitialVariantWeight=3),
        account.variant(account.model(mark="b "), "B", InitialVariantWeight=1),
    )
    counts = Counter(account.invoke(name) for _ in range(200))
    # Three in four; ten standard deviations would be 61.
    assert 110 < counts["a x"] < 190
    assert counts["a x"] + counts["b x"] == 200
    assert {account.invoke(name, TargetVariant="B") for _ in range(10)} == {"b x"}
    response = refused(account.invoke, name, "x", TargetVariant="C")
    assert response["Error"]["Message"] == (
        f"Variant C of endpoint {name} of account 123456789012 not found."
    )
    account.scale(name, "A", DesiredWeight=0)
    assert {account.invoke(name) for _ in range(20)} == {"b x"}


def test_metrics(account):
    name = account.endpoint(InitialInstanceCount=2)
    account.invoke(name)
    account.invoke(name, "sleep 0.05")
    for status in (400, 500):
        refused(account.runtime.invoke_endpoint, EndpointName=name, Body=b"error %d x" % status)
    eventually(lambda: metric(account, name, "Invocations")["Sum"] == 4)
    assert metric(account, name, "Invocations")["Unit"] == "None"
    assert metric(account, name, "InvocationsPerInstance")["Sum"] == 2
    assert metric(account, name, "Invocation4XXErrors")["Sum"] == 1
    assert metric(account, name, "Invocation5XXErrors")["Average"] == 0.25
    assert metric(account, name, "InvocationModelErrors")["Sum"] == 2
    latency = metric(account, name, "ModelLatency")
    assert latency["Unit"] == "Microseconds"
    assert 50_000 < latency["Maximum"] < 1_000_000
    assert latency["Minimum"] < 50_000
    assert metric(account, name, "OverheadLatency")["SampleCount"] == 4


def test_container_output_is_in_cloudwatch_logs(account):
    name = account.endpoint()
    refused(account.invoke, name, "error 500 x")
    group = f"/aws/sagemaker/Endpoints/{name}"
    (stream,) = account.logs.describe_log_streams(logGroupName=group)["logStreams"]
    variant, _, instance = stream["logStreamName"].partition("/")
    assert variant == "AllTraffic"
    assert len(instance) == len("i-0123456789abcdef0")

    def messages() -> list[str]:
        events = account.logs.get_log_events(
            logGroupName=group, logStreamName=stream["logStreamName"], startFromHead=True
        )["events"]
        return [event["message"] for event in events]

    eventually(lambda: len(messages()) == 2)
    assert messages()[0].startswith("stand-in ok pid")
    assert messages()[1] == "failing with 500"
    (file,) = (account.directory / "logs").glob(f"*{instance}.log")
    assert file.read_text().splitlines() == messages()
    # As a stack's deletion does it: nothing may bring the group back afterwards.
    account.delete(name)
    account.logs.delete_log_group(logGroupName=group)
    assert account.logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"] == []


def test_requests_in_parallel_share_nothing(account, endpoint):
    wrong: list[str] = []

    def ask(word: str) -> None:
        wrong.extend(word for _ in range(25) if account.invoke(endpoint, word) != word)

    threads = [threading.Thread(target=ask, args=(f"word{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


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
