"""The stack of an asynchronous endpoint: what it serves, and that it needs each of its rights."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import yaml

from slipway.config.sections.endpoint import AsyncInference
from slipway.errors import UserError
from slipway.operations.invoke.asynchronous import AsyncAnswer, invoke_async
from slipway.operations.invoke.realtime import Request
from slipway.operations.leftovers import find_leftovers
from slipway.operations.preflight.findings import parted
from slipway.operations.preflight.live import compare_mode
from slipway.operations.preflight.places import find_queue
from slipway.operations.status import find_status
from slipway.planning.plan import DeploymentPlan
from slipway.rights.pipeline import least_policy
from tests.support.golden_cases import CASES
from tests.support.plans import plan_for
from tests.support.projects import LOCAL, model_config
from tests.support.recorded_calls import RecordedCalls
from tests.support.slipway_stack import SlipwayStack, golden_template
from tests.support.waiting import eventually

pytestmark = pytest.mark.size("all")

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

    def with_own_keys(self, text: str) -> str:
        for name, arn in zip(KEYS, self.keys, strict=True):
            text = text.replace(name, arn.rpartition("/")[2])
        return text

    @property
    def plan(self) -> AsyncInference:
        """The section of the golden case, with the keys of the account."""
        case = yaml.safe_load(self.with_own_keys((CASES / "async.yaml").read_text("utf-8")))
        return AsyncInference.model_validate(case["endpoint"]["async_inference"])

    def template(self) -> dict[str, Any]:
        return self.stack.deployable(self.with_own_keys(golden_template("async")))

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
def queue(stack: SlipwayStack) -> Iterator[Queue]:
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
    without = json.loads(json.dumps(document))
    for statement in without["Statement"]:
        if not of or statement["Sid"] == _STATEMENTS[of]:
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


def ask(queue: Queue, body: bytes, limit_seconds: float = 30) -> Any:
    request = Request(NAME, body, "text/plain", "*/*", None)
    waited: list[float] = []
    return invoke_async(
        request, queue.plan, queue.stack.access, limit_seconds=limit_seconds, show=waited.append
    )


def refused(queue: Queue, body: bytes, limit_seconds: float = 30) -> tuple[str, str]:
    with pytest.raises(UserError) as caught:
        ask(queue, body, limit_seconds)
    (problem,) = caught.value.problems
    return problem.message, problem.remedy


def test_invoke_waits_for_the_answer(queue: Queue) -> None:
    answer = ask(queue, b"sleep 0.3")
    assert answer.body == b"slept"
    assert answer.content_type == "text/x-stand-in"
    assert answer.waited_seconds >= 0.3
    assert answer.input_location.startswith("s3://my-requests/tiny/slipway-invoke/")
    # boto3 and the AWS CLI read the same objects.
    found = queue.read(answer.output_location)
    assert found is not None
    assert found["Body"].read() == b"slept"
    sent = queue.read(answer.input_location)
    assert sent is not None
    assert (sent["Body"].read(), sent["SSEKMSKeyId"]) == (b"sleep 0.3", queue.keys[0])


def test_an_inline_request_has_no_object_and_its_answer_a_name_of_its_own(queue: Queue) -> None:
    members = {"Filename": "a.txt", "S3OutputPathExtension": "mine"}
    request = Request(NAME, b"inline", "text/plain", "*/*", None, members=members)

    def send(request: Request) -> AsyncAnswer:
        options: Any = {"limit_seconds": 30, "show": lambda _: None, "is_inline": True}
        return invoke_async(request, queue.plan, queue.stack.access, **options)

    answer = send(request)
    assert (answer.body, answer.input_location) == (b"inline", None)
    assert answer.output_location == "s3://my-answers/tiny/mine/a.txt"
    with pytest.raises(UserError, match=r"s3://my-answers/tiny/mine/a\.txt is an older answer"):
        send(request)
    with pytest.raises(UserError, match="is 128,001 bytes; SageMaker takes at most 128,000 inline"):
        send(replace(request, body=b"x" * 128_001))


def test_invoke_tells_the_reason_of_a_failure(queue: Queue) -> None:
    message, remedy = refused(queue, b"error 400 no such field")
    assert message == "the request failed: no such field"
    assert remedy.startswith("The reason is in s3://my-answers/failed/")
    assert remedy.endswith("Look at the log with `slipway status async --env local`.")


def test_invoke_ends_at_its_limit_and_the_request_does_not(queue: Queue) -> None:
    message, remedy = refused(queue, b"sleep 1.5", limit_seconds=0.2)
    assert message == "no answer within 0.2 s; the request may still wait or be computed"
    location = remedy.partition("Look for ")[2].partition(" later")[0]
    assert location.startswith("s3://my-answers/tiny/")
    found = eventually(lambda: queue.read(location))
    assert found is not None
    assert found["Body"].read() == b"slept"


def queued_plan(queue: Queue, **more: Any) -> DeploymentPlan:
    section = queue.plan.model_dump(exclude_unset=True) | more
    section |= {"include_response_in": ["success", "error"]}
    return planned({"mode": "async", "async_inference": section})


def planned(endpoint: dict[str, Any]) -> DeploymentPlan:
    return plan_for(model_config("async", endpoint=endpoint))


def test_preflight_names_what_is_missing(queue: Queue) -> None:
    plan = queued_plan(queue).config.endpoint.queue
    assert plan is not None
    found, problems = parted(find_queue(plan, queue.stack.access))
    assert problems == []
    assert found[:2] == ["bucket my-requests", "bucket my-answers"]
    assert len(found) == 7
    key = queue.stack.stacks.client("kms").create_key()["KeyMetadata"]["Arn"]
    queue.stack.stacks.client("kms").disable_key(KeyId=key.rpartition("/")[2])
    nowhere = f"arn:aws:sns:{LOCAL.region}:{LOCAL.account}:nowhere"
    gone = f"{key[:-12]}000000000000"
    wrong = queued_plan(
        queue, input="s3://not-there/", error_topic_arn=nowhere, input_key_arn=key,
        output_key_arn=gone,
    ).config.endpoint.queue  # fmt: skip
    assert wrong is not None
    _, problems = parted(find_queue(wrong, queue.stack.access))
    assert [(each.message, each.remedy) for each in problems] == [
        ("the bucket not-there does not exist", "Correct `async_inference`, or make the bucket."),
        (f"the topic {nowhere} does not exist", "Correct `async_inference`, or make the topic."),
        (
            f"the key {key} is in state Disabled",
            "Enable the key, or name another one in `async_inference`.",
        ),
        (f"the key {gone} does not exist", "Correct `async_inference`, or make the key."),
    ]


def test_preflight_refuses_another_mode(queue: Queue) -> None:
    assert parted(compare_mode(queued_plan(queue), queue.stack.access)) == ([], [])
    _, (problem,) = parted(compare_mode(planned({}), queue.stack.access))
    assert problem.message == (
        "async-local is asynchronous and would become real-time, which SageMaker refuses"
    )
    assert problem.remedy == (
        "Run `cdk destroy async -c models=async -c env=local` when nobody uses the endpoint, "
        "then deploy."
    )


def test_status_tells_the_mode_and_what_differs(queue: Queue) -> None:
    same = find_status(NAME, queue.stack.access, plan=queued_plan(queue), log_line_count=0)
    assert same.endpoint is not None
    assert same.endpoint.answers == "s3://my-answers/tiny"
    assert same.troubles() == []
    changed = queued_plan(queue, max_concurrent_invocations_per_instance=2)
    found = find_status(NAME, queue.stack.access, plan=changed, log_line_count=0).differences
    section = "endpoint.async_inference."
    assert [(d.setting, d.deployed, d.files) for d in found if d.setting.startswith(section)] == [
        (f"{section}max_concurrent_invocations_per_instance", "4", "2")
    ]


def test_the_policy_is_what_the_commands_need(queue: Queue) -> None:
    plan = queued_plan(queue)
    recorded = RecordedCalls(queue.stack.access, f"{LOCAL.region}:{LOCAL.account}")
    assert plan.config.endpoint.queue is not None
    list(find_queue(plan.config.endpoint.queue, queue.stack.access))
    ask(queue, b"x")
    policy = least_policy(plan, LOCAL, [(None, None)])
    assert recorded.denied_by(policy) == set()
    found = {each["Sid"]: each for each in policy["Statement"]}
    assert found["Invoke"]["Action"] == ["sagemaker:InvokeEndpointAsync"]
    of_queue = {"FindQueueBuckets", "FindTopics", "FindQueueKeys", "PutRequests", "ReadAnswers"}
    assert {pair for pair in recorded.unused_of(policy) if pair[0] in of_queue} == set()
    # S3 uses the keys in the caller's name, so no call of KMS is recorded.
    assert found["EncryptRequests"]["Resource"] == [queue.keys[0]]
    assert found["DecryptAnswers"]["Resource"] == [queue.keys[1]]


def _policy_of(iam: Any) -> tuple[str, str, dict[str, Any]]:
    """Returns the role, and the name and the content of the policy with the queue's rights."""
    for role in iam.list_roles()["Roles"]:
        names = iam.list_role_policies(RoleName=role["RoleName"])["PolicyNames"]
        for name in names:
            if name.startswith("AsyncInference"):
                found = iam.get_role_policy(RoleName=role["RoleName"], PolicyName=name)
                return role["RoleName"], name, found["PolicyDocument"]
    raise AssertionError("no role has the queue's rights")
