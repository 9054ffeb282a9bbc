"""The client that waits for a waking endpoint, against a server that answers as SageMaker does."""

import io
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, HTTPClientError

import slipway.client
from slipway.client import wait_for_wake
from slipway.embedded_aws.hosting.invocations.event_stream import event
from tests.unit.benchmarking.stub_endpoint import Answered, Request, Stub, stub_server

ASLEEP = (
    "Inference Component has no capacity to process this request. ApplicationAutoScaling may be "
    "in-progress (if configured) or try to increase the capacity by invoking "
    "UpdateInferenceComponentRuntimeConfig API."
)
SESSION = boto3.Session("a", "b", region_name="us-east-1")
Answer = tuple[int, str, str]
# The server closes the connection without an answer.
DROPPED: Answer = (0, "", "")
SLEEPING = 400, "ValidationError", ASLEEP
UNAVAILABLE = 503, "ServiceUnavailable", "down"


class Runtime:
    """InvokeEndpoint: gives the answers in their order, and then echoes the body."""

    def __init__(self, stub: Stub) -> None:
        self.answers: list[Answer] = []
        self.bodies: list[bytes] = []
        self.asleep: Callable[[], bool] = lambda: False
        self.lock = threading.Lock()
        self.url = stub.access.client("sagemaker-runtime").meta.endpoint_url
        stub.answer = self.respond

    def client(self, **retries: Any) -> Any:
        config = Config(retries=cast("Any", retries), max_pool_connections=32)
        return SESSION.client("sagemaker-runtime", endpoint_url=self.url, config=config)

    def next_answer(self, body: bytes) -> Answer | None:
        with self.lock:
            self.bodies.append(body)
            if self.answers:
                return self.answers.pop(0)
        return SLEEPING if self.asleep() else None

    def respond(self, _number: int, request: Request) -> Answered | None:
        body = request.body
        answer = self.next_answer(body)
        if answer is DROPPED:
            return None
        if answer is not None:
            status, code, message = answer
            return status, {"x-amzn-ErrorType": code}, json.dumps({"Message": message}).encode()
        if request.path.endswith("response-stream"):
            parts = event("PayloadPart", body[:2]) + event("PayloadPart", body[2:])
            return 200, {"Content-Type": "application/vnd.amazon.eventstream"}, parts
        return 200, {"x-Amzn-Invoked-Production-Variant": "AllTraffic"}, body


@pytest.fixture(scope="module")
def next_stub() -> Iterator[Callable[[], Stub]]:
    with stub_server() as make:
        yield make


@pytest.fixture
def runtime(next_stub: Callable[[], Stub]) -> Runtime:
    return Runtime(next_stub())


def waiting(runtime: Runtime, *, limit_seconds: float = 60, attempts: int = 1, **more: Any) -> Any:
    client = runtime.client(total_max_attempts=attempts)
    wait_for_wake(client, limit_seconds=limit_seconds, poll_seconds=0.01, **more)
    return client


def ask(client: Any, body: Any = b"ping") -> bytes:
    response = client.invoke_endpoint(EndpointName="e", InferenceComponentName="e", Body=body)
    answered: bytes = response["Body"].read()
    return answered


def test_a_request_waits_until_the_endpoint_is_awake(runtime: Runtime) -> None:
    waited: list[float] = []
    client = waiting(runtime, on_wait=waited.append)
    runtime.answers = [SLEEPING] * 7
    assert ask(client) == b"ping"
    assert runtime.bodies == [b"ping"] * 8
    assert len(waited) == 7
    assert waited == sorted(waited)
    assert waited[0] == 0


def test_the_sleeping_endpoints_own_error_follows_the_limit(runtime: Runtime) -> None:
    client = waiting(runtime, limit_seconds=0.2)
    runtime.asleep = lambda: True
    begun = time.monotonic()
    with pytest.raises(ClientError, match="has no capacity to process this request") as caught:
        ask(client)
    assert time.monotonic() - begun >= 0.2
    assert slipway.client.is_asleep(caught.value.response)
    assert len(runtime.bodies) > 2
    # The next request has the whole limit again.
    runtime.asleep = lambda: False
    runtime.answers = [SLEEPING] * 3
    assert ask(client) == b"ping"


@pytest.mark.parametrize(
    "answer",
    [
        (400, "ValidationError", "Inference Component e not found."),
        (424, "ModelError", f"Received client error (400): {ASLEEP}"),
        (403, "AccessDeniedException", "not authorized"),
        (500, "InternalFailure", "failed"),
        UNAVAILABLE,
        DROPPED,
    ],
)
def test_every_other_error_is_raised_at_once(runtime: Runtime, answer: Answer) -> None:
    runtime.answers = [answer]
    with pytest.raises(HTTPClientError if answer is DROPPED else ClientError):
        ask(waiting(runtime))
    assert len(runtime.bodies) == 1


def test_botocores_own_attempts_are_the_same_after_a_long_wait(runtime: Runtime) -> None:
    client = waiting(runtime, attempts=3)
    runtime.answers = [*[SLEEPING] * 6, DROPPED, UNAVAILABLE, SLEEPING, UNAVAILABLE]
    assert ask(client) == b"ping"
    assert len(runtime.bodies) == 11
    runtime.answers = [*[SLEEPING] * 6, *[UNAVAILABLE] * 3]
    with pytest.raises(ClientError, match="ServiceUnavailable"):
        ask(client)
    assert runtime.answers == []


@pytest.mark.parametrize("mode", ["legacy", "standard", "adaptive"])
def test_each_mode_of_retries_waits(runtime: Runtime, mode: str) -> None:
    client = runtime.client(mode=mode)
    wait_for_wake(client, poll_seconds=0.01)
    runtime.answers = [SLEEPING] * 9
    assert ask(client) == b"ping"


def test_a_file_and_a_pipe_are_sent_each_time(runtime: Runtime) -> None:
    runtime.answers = [SLEEPING] * 2
    file = io.BytesIO(b"header;body")
    file.seek(7)
    assert ask(waiting(runtime), file) == b"body"
    assert runtime.bodies == [b"body"] * 3
    reading, writing = os.pipe()
    os.write(writing, b"piped")
    os.close(writing)
    runtime.answers = [SLEEPING] * 2
    with os.fdopen(reading, "rb") as pipe:
        assert ask(waiting(runtime), pipe) == b"piped"
    assert runtime.bodies[3:] == [b"piped"] * 3


def test_streamed_answers_begin_after_the_wait_and_threads_lose_no_request(
    runtime: Runtime,
) -> None:
    runtime.answers = [SLEEPING] * 3
    response = waiting(runtime).invoke_endpoint_with_response_stream(
        EndpointName="e", InferenceComponentName="e", Body=b"parts"
    )
    assert [event["PayloadPart"]["Bytes"] for event in response["Body"]] == [b"pa", b"rts"]
    client = waiting(runtime)
    # The endpoint wakes when each of the threads has been refused three times at least.
    runtime.asleep = lambda: len(runtime.bodies) < 60
    bodies = [f"request {number}".encode() for number in range(16)]
    with ThreadPoolExecutor(len(bodies)) as pool:
        assert list(pool.map(lambda body: ask(client, body), bodies)) == bodies


@pytest.mark.parametrize("wrong", [{"limit_seconds": 0}, {"poll_seconds": -1}])
def test_a_limit_and_a_pause_are_above_zero(runtime: Runtime, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="limit_seconds and poll_seconds must be above 0"):
        wait_for_wake(runtime.client(), **wrong)


def test_a_copy_of_the_file_needs_nothing_but_python(tmp_path: Path) -> None:
    copy = tmp_path / "client.py"
    copy.write_bytes(Path(str(slipway.client.__file__)).read_bytes())
    # Neither packages that are installed nor the project can be imported.
    subprocess.run([sys.executable, "-I", "-S", str(copy)], cwd=tmp_path, check=True)
