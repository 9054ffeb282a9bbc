"""Asynchronous endpoints: requests in a queue, answers and failures in S3, notices and metrics."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto.cloudwatch.models import cloudwatch_backends

from slipway.embedded_aws.identity import ACCOUNT_ID
from tests.embedded.hosting.conftest import REGION, Account, Mailbox, Role, may, started
from tests.support.clocks import MovableClock
from tests.support.waiting import eventually

OUTPUT, FAILURES = "s3://answers/ocr/", "s3://answers/failed"


class Queue:
    def __init__(self, account: Account, clock: MovableClock) -> None:
        self.account = account
        self.clock = clock
        self._boxes: dict[str, Mailbox] = {}

    def topic(self, name: str) -> str:
        self._boxes[name] = self.account.mailbox(name)
        return self._boxes[name].topic

    def notices(self, topic: str, count: int) -> list[dict[str, Any]]:
        return [json.loads(self._boxes[topic].next()["Message"]) for _ in range(count)]

    def endpoint(self, *, concurrency: int = 1, **output: Any) -> str:
        declared = {
            "OutputConfig": {"S3OutputPath": OUTPUT, **output},
            "ClientConfig": {"MaxConcurrentInvocationsPerInstance": concurrency},
        }
        variant = self.account.variant(self.account.model())
        name = self.account.serve(variant, AsyncInferenceConfig=declared)
        assert self.account.settled(name)["AsyncInferenceConfig"] == declared
        return name

    def send(self, endpoint: str, body: str, **more: Any) -> dict[str, Any]:
        key = f"requests/{self.account.name()}"
        self.account.put(key, body.encode())
        answer: dict[str, Any] = self.account.runtime.invoke_endpoint_async(
            EndpointName=endpoint, InputLocation=f"s3://artifacts/{key}", **more
        )
        assert answer["ResponseMetadata"]["HTTPStatusCode"] == 202
        return answer

    def read(self, location: str) -> str | None:
        bucket, _, key = location.removeprefix("s3://").partition("/")
        try:
            found = self.account.s3.get_object(Bucket=bucket, Key=key)
        except self.account.s3.exceptions.NoSuchKey:
            return None
        return str(found["Body"].read().decode())

    def answer(self, sent: dict[str, Any]) -> str:
        return eventually(lambda: self.read(sent["OutputLocation"]))

    def failure(self, sent: dict[str, Any]) -> str:
        """Waits for the failure of a request, which then has no answer."""
        found = eventually(lambda: self.read(sent["FailureLocation"]))
        assert self.read(sent["OutputLocation"]) is None
        return found

    def values(self, endpoint: str, metric: str, variant: str | None = "AllTraffic") -> list[float]:
        """Returns the highest value of each minute that a metric has."""
        wanted = {("EndpointName", endpoint)}
        if variant is not None:
            wanted.add(("VariantName", variant))
        data = cloudwatch_backends[ACCOUNT_ID][REGION].metric_data
        return [
            datum.max
            for datum in list(data)
            if datum.name == metric and {(d.name, d.value) for d in datum.dimensions} == wanted
        ]

    def scale(self, endpoint: str, count: int) -> dict[str, Any]:
        return self.account.scale(endpoint, DesiredInstanceCount=count)


def told(notice: dict[str, Any]) -> str:
    body = notice["responseBody"]
    assert body["encoding"] == "BASE64"
    return base64.b64decode(body["content"]).decode()


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    clock = MovableClock()
    folder = tmp_path_factory.mktemp("async")
    with started(folder, time_scale=0.02, clock=clock) as account:
        account.s3.create_bucket(Bucket="answers")
        role = Role(account)
        role.allow(may("s3:GetObject", "s3:ListBucket", "s3:PutObject", "sns:Publish"))
        account.role = role.arn
        yield Queue(account, clock)


def test_an_answer_is_an_object_and_a_notice(queue):
    endpoint = queue.endpoint(
        S3FailurePath=FAILURES,
        NotificationConfig={
            "SuccessTopic": queue.topic("done"),
            "IncludeInferenceResponseIn": ["SUCCESS_NOTIFICATION_TOPIC"],
        },
    )
    sent = queue.send(endpoint, "one", InferenceId="mine", ContentType="text/plain")
    assert sent["InferenceId"] == "mine"
    assert sent["OutputLocation"].startswith(OUTPUT)
    assert sent["FailureLocation"].startswith(f"{FAILURES}/")
    assert queue.answer(sent) == "one"
    (notice,) = queue.notices("done", 1)
    assert notice["invocationStatus"] == "Completed"
    assert notice["inferenceId"] == "mine"
    assert notice["requestParameters"]["endpointName"] == endpoint
    assert notice["responseParameters"] == {
        "contentType": "text/x-stand-in",
        "outputLocation": sent["OutputLocation"],
    }
    assert told(notice) == "one"
    assert queue.read(sent["FailureLocation"]) is None
    eventually(lambda: queue.values(endpoint, "InvocationsProcessed") == [1.0])
    assert queue.values(endpoint, "ModelLatency")
    assert queue.values(endpoint, "Invocations") == []
    headers = json.loads(queue.answer(queue.send(endpoint, "headers", ContentType="text/plain")))
    assert headers["content-type"] == "text/plain"
    sent = queue.account.runtime.invoke_endpoint_async(
        EndpointName=endpoint, Body=b"in", Filename="a.txt", S3OutputPathExtension="of/me/"
    )
    assert sent["OutputLocation"] == f"{OUTPUT}of/me/a.txt"
    assert queue.answer(sent) == "in"
    (notice,) = (each for each in queue.notices("done", 2) if told(each) == "in")
    assert "inputLocation" not in notice["requestParameters"]
    long = queue.send(endpoint, "x" * (128 * 1024 + 1))
    (notice,) = queue.notices("done", 1)
    assert notice["responseParameters"]["outputLocation"] == long["OutputLocation"]
    assert "responseBody" not in notice


def test_each_request_of_a_growing_queue_is_answered_once(queue):
    endpoint = queue.endpoint(
        concurrency=2, NotificationConfig={"SuccessTopic": queue.topic("each")}
    )
    sent = [queue.send(endpoint, f"sleep 0.0{number}") for number in range(9)]
    assert {queue.answer(each) for each in sent} == {"slept"}
    notices = queue.notices("each", 9)
    assert sorted(notice["inferenceId"] for notice in notices) == sorted(
        each["InferenceId"] for each in sent
    )


def test_failures_are_objects_notices_and_counts(queue):
    endpoint = queue.endpoint(
        S3FailurePath=FAILURES,
        NotificationConfig={
            "ErrorTopic": queue.topic("failed"),
            "IncludeInferenceResponseIn": ["ERROR_NOTIFICATION_TOPIC"],
        },
    )
    refused = queue.send(endpoint, "error 400 wrong image")
    assert queue.failure(refused) == "wrong image"
    (notice,) = queue.notices("failed", 1)
    assert notice["invocationStatus"] == "Failed"
    assert notice["failureReason"] == (
        "ClientError: Received client error (400) from model. See the SageMaker Endpoint logs in "
        "your account for more information."
    )
    assert notice["failureLocation"] == refused["FailureLocation"]
    assert told(notice) == "wrong image"
    missing = queue.account.runtime.invoke_endpoint_async(
        EndpointName=endpoint, InputLocation="s3://artifacts/requests/none"
    )
    assert "Could not download s3://artifacts/requests/none" in queue.failure(missing)
    late = queue.send(endpoint, "sleep 3", InvocationTimeoutSeconds=10)
    assert "did not answer within the request's 10 seconds" in queue.failure(late)
    assert all("responseBody" not in each for each in queue.notices("failed", 2))
    eventually(lambda: queue.values(endpoint, "RequestDownloadFailures") == [1.0])
    assert queue.values(endpoint, "Invocation4XXErrors") == [1.0]
    assert queue.values(endpoint, "InvocationFailures") == [1.0]
    # The queue goes on.
    assert queue.answer(queue.send(endpoint, "after")) == "after"


def test_a_container_that_dies_loses_no_request(queue):
    endpoint = queue.endpoint(concurrency=2, S3FailurePath=FAILURES)
    pid = int(queue.answer(queue.send(endpoint, "pid")))
    working = queue.send(endpoint, "sleep 1")
    eventually(lambda: queue.values(endpoint, "ApproximateBacklogSize", None))
    killing = queue.send(endpoint, "exit")
    # Each attempt ends the container, so the third is the last.
    assert "The container ended 3 times while it computed the request" in queue.failure(killing)
    outcome = eventually(
        lambda: queue.read(working["OutputLocation"]) or queue.read(working["FailureLocation"])
    )
    assert outcome == "slept" or "The container ended 3 times" in outcome
    assert int(queue.answer(queue.send(endpoint, "pid"))) != pid


def test_a_container_that_is_gone_takes_no_attempt_of_a_request(queue):
    """A busy machine notices the end of a process late. Until then its port refuses connections."""
    endpoint = queue.endpoint(S3FailurePath=FAILURES)
    ending = queue.send(endpoint, "refuse 0.2")
    waiting = queue.send(endpoint, "after")
    assert "The container ended 3 times while it computed the request" in queue.failure(ending)
    assert queue.answer(waiting) == "after"
    ended = "The container exited with status 3; it is restarted."
    eventually(lambda: queue.account.logged(endpoint).count(ended) == 3)


def test_a_role_without_rights_fails_requests_and_says_why(queue):
    account = queue.account
    artifacts = ["arn:aws:s3:::artifacts", "arn:aws:s3:::artifacts/*"]
    denied = Role(account)
    denied.allow(
        may("s3:GetObject", "s3:ListBucket", on=artifacts),
        may("s3:PutObject", on="arn:aws:s3:::answers/failed/*"),
    )
    role, account.role = account.role, denied.arn
    try:
        endpoint = queue.endpoint(
            S3FailurePath=FAILURES, NotificationConfig={"ErrorTopic": queue.topic("denied")}
        )
    finally:
        account.role = role
    failure = queue.failure(queue.send(endpoint, "one"))
    assert "ClientError: Could not upload s3://answers/ocr/" in failure
    assert "is not authorized to perform: s3:PutObject" in failure
    eventually(lambda: queue.values(endpoint, "ResponseUploadFailures") == [1.0])
    eventually(lambda: queue.values(endpoint, "NotificationFailures") == [1.0])


def test_a_fleet_of_zero_keeps_its_queue_and_wakes(queue):
    running = queue.account.directory / "instances"
    # Other tests' endpoints may run.
    before = set(running.iterdir()) if running.is_dir() else set()
    endpoint = queue.endpoint()
    assert queue.answer(queue.send(endpoint, "warm")) == "warm"
    (variant,) = queue.scale(endpoint, 0)["ProductionVariants"]
    assert (variant["CurrentInstanceCount"], variant["DesiredInstanceCount"]) == (0, 0)
    assert set(running.iterdir()) == before
    sent = [queue.send(endpoint, text) for text in ("one", "two", "three")]
    eventually(lambda: 1.0 in queue.values(endpoint, "HasBacklogWithoutCapacity", None))
    eventually(lambda: max(queue.values(endpoint, "ApproximateBacklogSize", None)) == 3.0)
    assert all(queue.read(each["OutputLocation"]) is None for each in sent)
    queue.scale(endpoint, 2)
    assert [queue.answer(each) for each in sent] == ["one", "two", "three"]


def test_a_request_expires_in_the_queue(queue):
    endpoint = queue.endpoint(S3FailurePath=FAILURES)
    queue.scale(endpoint, 0)
    short = queue.send(endpoint, "short", RequestTTLSeconds=60)
    long = queue.send(endpoint, "long")
    queue.clock.pass_minute()
    queue.clock.pass_minute()
    assert "expired in the queue after 60 seconds" in queue.failure(short)
    eventually(lambda: queue.values(endpoint, "ExpiredRequests") == [1.0])
    queue.scale(endpoint, 1)
    assert queue.answer(long) == "long"


def test_an_update_keeps_the_queue(queue):
    endpoint = queue.endpoint()
    queue.scale(endpoint, 0)
    sent = queue.send(endpoint, "waiting")
    account = queue.account
    declared = {"OutputConfig": {"S3OutputPath": OUTPUT}}
    config = account.config(
        account.variant(account.model(mark="new ")), AsyncInferenceConfig=declared
    )
    (variant,) = account.update(endpoint, config, RetainAllVariantProperties=True)[
        "ProductionVariants"
    ]
    assert variant["CurrentInstanceCount"] == 0
    queue.scale(endpoint, 1)
    assert queue.answer(sent) == "new waiting"
    realtime = account.config(account.variant(account.model()))
    with pytest.raises(ClientError, match="cannot be removed from this endpoint"):
        account.update(endpoint, realtime)


@pytest.fixture(scope="module")
def refusing(queue: Queue) -> str:
    return queue.endpoint()


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ({"InputLocation": "https://artifacts.s3.amazonaws.com/in"}, "reads s3://BUCKET/KEY only"),
        ({"RequestTTLSeconds": 21_601}, "less than or equal to 21600"),
        ({"InvocationTimeoutSeconds": 3601}, "less than or equal to 3600"),
        ({"S3OutputPathExtension": "s3://a"}, "regular expression pattern"),
        ({"Filename": "a.b.c"}, "regular expression pattern"),
        ({"Body": b"x"}, "exactly one of Body and InputLocation"),
        ({"InputLocation": None}, "exactly one of Body and InputLocation"),
        ({"InputLocation": None, "Body": b"x" * 128_001}, "128001 bytes, and at most 128000"),
    ],
)
def test_wrong_requests_are_refused(queue, refusing, over, message):
    given = {"EndpointName": refusing, "InputLocation": "s3://artifacts/in", **over}
    request = {name: value for name, value in given.items() if value is not None}
    with pytest.raises(ClientError, match=message):
        queue.account.runtime.invoke_endpoint_async(**request)


def test_each_operation_has_its_endpoints(queue, refusing):
    with pytest.raises(ClientError, match="is asynchronous: call InvokeEndpointAsync"):
        queue.account.invoke(refusing)
    with pytest.raises(ClientError, match=r"Endpoint none of account \d+ not found"):
        queue.account.runtime.invoke_endpoint_async(
            EndpointName="none", InputLocation="s3://artifacts/in"
        )
    account = queue.account
    two = [account.variant(account.model(), name) for name in ("a", "b")]
    with pytest.raises(ClientError, match="an asynchronous endpoint of several variants"):
        account.config(*two, AsyncInferenceConfig={"OutputConfig": {"S3OutputPath": OUTPUT}})
