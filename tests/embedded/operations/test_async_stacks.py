"""The stack of an asynchronous endpoint: what it serves, and that it needs each of its rights."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slipway.operations.leftovers import find_leftovers
from tests.support.projects import DIGEST, LOCAL
from tests.support.slipway_stack import SlipwayStack, publish_functions, slipway_stack
from tests.support.waiting import eventually

pytestmark = pytest.mark.size("all")

_TEMPLATE = Path(__file__).parents[2] / "golden" / "templates" / "async.json"
NAME = "async-local"
# The keys of the golden case, in the order of requests, answers and topics.
KEYS = (
    "0a1b2c3d-4e5f-6a7b-8c9d-0e1f2a3b4c5d",
    "1234abcd-12ab-34cd-56ef-1234567890ab",
    "2345bcde-12ab-34cd-56ef-1234567890ab",
)
# Each right, what a request is that needs it, and the trace that its lack leaves.
RIGHTS = [
    ("s3:GetObject", "x", "RequestDownloadFailures"),
    ("kms:Decrypt of requests", "x", "RequestDownloadFailures"),
    ("s3:PutObject", "x", "ResponseUploadFailures"),
    ("kms:GenerateDataKey of answers", "x", "ResponseUploadFailures"),
    ("kms:Decrypt of answers", "large", "ResponseUploadFailures"),
    ("sns:Publish", "x", "NotificationFailures"),
    ("kms:GenerateDataKey of notices", "x", "NotificationFailures"),
    ("kms:Decrypt of notices", "x", "NotificationFailures"),
]
_STATEMENTS = {
    "requests": "DecryptRequests",
    "answers": "EncryptAnswers",
    "notices": "EncryptNotices",
}


class Queue:
    """The deployed endpoint, and what its caller sees."""

    def __init__(self, stack: SlipwayStack) -> None:
        self.stack = stack
        self.s3 = stack.stacks.client("s3")
        kms = stack.stacks.client("kms")
        self.keys = [kms.create_key()["KeyMetadata"]["Arn"] for _ in KEYS]
        for bucket in ("my-requests", "my-answers"):
            self.s3.create_bucket(Bucket=bucket)
        for topic in ("answers", "failures"):
            stack.stacks.client("sns").create_topic(
                Name=topic, Attributes={"KmsMasterKeyId": self.keys[2]}
            )

    def template(self) -> dict[str, Any]:
        text = _TEMPLATE.read_text("utf-8").replace(DIGEST, self.stack.publish("ok"))
        for name, arn in zip(KEYS, self.keys, strict=True):
            text = text.replace(name, arn.rpartition("/")[2])
        template: dict[str, Any] = json.loads(text)
        publish_functions(self.stack.stacks, template)
        return template

    def send(self, body: bytes) -> dict[str, Any]:
        """Puts a request object and invokes the endpoint."""
        self.s3.put_object(
            Bucket="my-requests",
            Key="tiny/request",
            Body=body,
            ServerSideEncryption="aws:kms",
            SSEKMSKeyId=self.keys[0],
        )
        answer: dict[str, Any] = self.stack.stacks.client(
            "sagemaker-runtime"
        ).invoke_endpoint_async(EndpointName=NAME, InputLocation="s3://my-requests/tiny/request")
        return answer

    def read(self, location: str) -> dict[str, Any] | None:
        bucket, _, key = location.removeprefix("s3://").partition("/")
        try:
            found: dict[str, Any] = self.s3.get_object(Bucket=bucket, Key=key)
        except self.s3.exceptions.NoSuchKey:
            return None
        return found

    def count(self, metric: str) -> float:
        """Returns the sum of a metric since the endpoint was created."""
        found = self.stack.stacks.client("cloudwatch").get_metric_statistics(
            Namespace="AWS/SageMaker",
            MetricName=metric,
            Dimensions=[
                {"Name": "EndpointName", "Value": NAME},
                {"Name": "VariantName", "Value": "AllTraffic"},
            ],
            StartTime="2000-01-01",
            EndTime="2100-01-01",
            Period=60,
            Statistics=["Sum"],
        )
        return sum(point["Sum"] for point in found["Datapoints"])


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    with slipway_stack(tmp_path_factory.mktemp("async"), time_scale=0.005) as stack:
        queue = Queue(stack)
        assert stack.stacks.create(NAME, queue.template()) == "CREATE_COMPLETE"
        yield queue
        assert stack.stacks.delete(NAME) == "DELETE_COMPLETE"
        assert find_leftovers("async", LOCAL, stack.access) == []


def test_a_request_is_answered_as_an_encrypted_object(queue: Queue) -> None:
    sent = queue.send(b"hello")
    found = eventually(lambda: queue.read(sent["OutputLocation"]))
    assert found is not None
    assert found["Body"].read() == b"hello"
    assert found["SSEKMSKeyId"] == queue.keys[1]
    assert sent["FailureLocation"].startswith("s3://my-answers/failed/")


@pytest.mark.parametrize(("right", "body", "metric"), RIGHTS)
def test_each_right_is_needed(queue: Queue, right: str, body: str, metric: str) -> None:
    iam = queue.stack.stacks.client("iam")
    role, policy, document = _policy_of(iam)
    action, _, of = right.partition(" of ")
    statements = [
        statement
        for statement in document["Statement"]
        if not of or statement["Sid"] == _STATEMENTS[of]
    ]
    without = json.loads(json.dumps(document))
    for statement in without["Statement"]:
        if any(statement["Sid"] == each["Sid"] for each in statements):
            actions = statement["Action"]
            actions = [actions] if isinstance(actions, str) else actions
            # A statement needs an action.
            statement["Action"] = [each for each in actions if each != action] or ["s3:GetAcl"]
    assert without != document
    before = queue.count(metric)
    iam.put_role_policy(RoleName=role, PolicyName=policy, PolicyDocument=json.dumps(without))
    try:
        # 8 MiB and more are uploaded in parts.
        sent = queue.send(b"x" * 9_000_000 if body == "large" else body.encode())
        eventually(lambda: queue.count(metric) > before)
    finally:
        iam.put_role_policy(RoleName=role, PolicyName=policy, PolicyDocument=json.dumps(document))
    if metric != "NotificationFailures":
        assert queue.read(sent["OutputLocation"]) is None


def _policy_of(iam: Any) -> tuple[str, str, dict[str, Any]]:
    """Returns the role, and the name and the content of the policy with the queue's rights."""
    for role in iam.list_roles()["Roles"]:
        names = iam.list_role_policies(RoleName=role["RoleName"])["PolicyNames"]
        for name in names:
            if name.startswith("AsyncInference"):
                found = iam.get_role_policy(RoleName=role["RoleName"], PolicyName=name)
                return role["RoleName"], name, found["PolicyDocument"]
    raise AssertionError("no role has the queue's rights")
