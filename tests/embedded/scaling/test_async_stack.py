"""The stack of an asynchronous endpoint that drains to zero, wakes, and changes in between."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from slipway.operations.leftovers import find_leftovers
from slipway.operations.status import find_status
from slipway.planning.plan import DeploymentPlan
from slipway.stacks.endpoint_stack import EndpointStack
from tests.embedded.scaling.conftest import hosted_by
from tests.support.plans import plan_for
from tests.support.projects import DIGEST, LOCAL, model_config
from tests.support.slipway_stack import SlipwayStack, publish_functions, slipway_stack
from tests.support.waiting import eventually
from tests.synth.assemblies import new_app

pytestmark = pytest.mark.size("all")

NAME = "queued-local"
ONE, OTHER = "ml.g5.xlarge", "ml.g5.2xlarge"
SCALING = {"min_instance_count": 0, "max_instance_count": 3, "target_backlog_per_instance": 50}
ALARMS = {
    "model_latency_p99_milliseconds": 60_000,
    "oldest_request_seconds": 100,
    "at_max_capacity": True,
    "evaluation_periods_minutes": 1,
}
PLACES = {
    "input": "s3://my-requests/",
    "output": "s3://my-answers/out/",
    "failure_output": "s3://my-answers/failed/",
}


# An hour of the canary becomes 36 s: longer than the test takes.
GUARDED = {"strategy": "canary", "step_percent": 50, "wait_seconds": 3600}


def plan_of(instance_type: str, instance_count: int = 1, **more: Any) -> DeploymentPlan:
    endpoint = {
        "instances": [instance_type],
        "instance_count": instance_count,
        "mode": "async",
        "async_inference": PLACES,
    }
    more = {"autoscaling": SCALING, "alarms": ALARMS, **more}
    config = model_config("queued", endpoint=endpoint, **more)
    return plan_for(config)


class Fleet:
    def __init__(self, stack: SlipwayStack, directory: Path) -> None:
        self.stack = stack
        self.s3 = stack.stacks.client("s3")
        self.sagemaker = stack.stacks.client("sagemaker")
        self.scaling = stack.stacks.client("application-autoscaling")
        for bucket in ("my-requests", "my-answers"):
            self.s3.create_bucket(Bucket=bucket)
        app = new_app(directory)
        env = cdk.Environment(account=LOCAL.account, region=LOCAL.region)
        for each in (ONE, OTHER):
            EndpointStack(app, each.replace(".", "-"), plan=plan_of(each), env=env)
        guarded = plan_of(ONE, 2, rollout=GUARDED, autoscaling=SCALING | {"min_instance_count": 2})
        EndpointStack(app, "guarded", plan=guarded, env=env)
        self._templates = Path(app.synth().directory)

    def template(self, name: str, mode: str = "ok") -> dict[str, Any]:
        """The template of an instance type, or of the first type with a canary (`guarded`)."""
        file = self._templates / f"{name.replace('.', '-')}.template.json"
        text = file.read_text("utf-8").replace(DIGEST, self.stack.publish(mode))
        template: dict[str, Any] = json.loads(text)
        publish_functions(self.stack.stacks, template)
        return template

    def counts(self) -> tuple[int, int]:
        described = self.sagemaker.describe_endpoint(EndpointName=NAME)
        (variant,) = described["ProductionVariants"]
        return variant["CurrentInstanceCount"], variant["DesiredInstanceCount"]

    def becomes(self, count: int) -> None:
        eventually(lambda: self.counts() == (count, count), seconds=20)
        eventually(
            lambda: (
                self.sagemaker.describe_endpoint(EndpointName=NAME)["EndpointStatus"] == "InService"
            )
        )

    def pass_minutes(self, minutes: int) -> None:
        for _ in range(minutes):
            self.stack.stacks.aws.pass_minute()

    def pass_minutes_until_raised(self, alarm: str) -> None:
        """Lets minutes pass until an alarm is raised: a value may come just after its minute."""
        for _ in range(5):
            self.pass_minutes(1)
            if alarm in self.raised():
                return
        raise AssertionError(f"{alarm} was never raised")

    def send(self, *bodies: str) -> list[str]:
        runtime = self.stack.stacks.client("sagemaker-runtime")
        sent = []
        for number, body in enumerate(bodies):
            key = f"requests/{number}-{body}"
            self.s3.put_object(Bucket="my-requests", Key=key, Body=body.encode())
            answer = runtime.invoke_endpoint_async(
                EndpointName=NAME, InputLocation=f"s3://my-requests/{key}"
            )
            sent.append(answer["OutputLocation"])
        return sent

    def written(self) -> set[str]:
        found = self.s3.list_objects_v2(Bucket="my-answers").get("Contents", [])
        return {f"s3://my-answers/{item['Key']}" for item in found}

    def policies(self) -> dict[str, str]:
        """Returns the ARN of each policy by its name, without the digest of the types."""
        found = self.scaling.describe_scaling_policies(ServiceNamespace="sagemaker")
        return {
            item["PolicyName"].rpartition("-")[0]: item["PolicyARN"]
            for item in found["ScalingPolicies"]
        }

    def wake_actions(self) -> list[str]:
        cloudwatch = self.stack.stacks.client("cloudwatch")
        alarms = cloudwatch.describe_alarms(AlarmNamePrefix=f"{NAME}-Scaling")["MetricAlarms"]
        (alarm,) = (each for each in alarms if each["MetricName"] == "HasBacklogWithoutCapacity")
        return list(alarm["AlarmActions"])

    def scale(self, count: int) -> None:
        hosted_by(self.stack).account.scale(NAME, DesiredInstanceCount=count)
        self.becomes(count)

    def raised(self) -> set[str]:
        """Returns the construct ids of the raised alarms, without those that scale."""
        cloudwatch = self.stack.stacks.client("cloudwatch")
        alarms = cloudwatch.describe_alarms(AlarmNamePrefix=f"{NAME}-Alarms")["MetricAlarms"]
        return {
            re.sub("[0-9A-F]{8}-.*", "", each["AlarmName"].removeprefix(f"{NAME}-Alarms"))
            for each in alarms
            if each["StateValue"] == "ALARM"
        }


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with slipway_stack(tmp_path / "account", time_scale=0.01) as stack:
        yield Fleet(stack, tmp_path / "cdk.out")


def test_a_queue_drains_to_zero_wakes_and_survives_an_update(fleet):
    stacks = fleet.stack.stacks
    assert stacks.create(NAME, fleet.template(ONE)) == "CREATE_COMPLETE"
    fleet.pass_minutes(16)
    fleet.becomes(0)
    assert fleet.stack.running() == []
    # Fewer than the target of 50, so that target tracking would let them wait.
    first = fleet.send("one", "two", "three")
    assert fleet.written() == set()
    fleet.pass_minutes(2)
    fleet.becomes(1)
    eventually(lambda: fleet.written() == set(first))

    # Two instances, and other types: the deployment keeps the count and every policy.
    fleet.scale(2)
    before = fleet.policies()
    assert set(before) == {"backlog-per-instance", "wake"}
    assert stacks.update(NAME, fleet.template(OTHER)) == "UPDATE_COMPLETE"
    assert fleet.counts() == (2, 2)
    after = fleet.policies()
    assert set(after) == set(before)
    # Other types have policies of their own, and the alarm follows.
    assert after["wake"] != before["wake"]
    assert fleet.wake_actions() == [after["wake"]]
    status = find_status(NAME, fleet.stack.access, plan=plan_of(OTHER), log_line_count=0)
    # The weights are the stand-in's, and not those of the plan.
    assert status.differences == ()

    fleet.pass_minutes(17)
    fleet.becomes(0)
    # Nothing is wrong with an empty fleet.
    assert find_status(NAME, fleet.stack.access, plan=None, log_line_count=0).troubles() == []
    second = fleet.send("four")
    fleet.pass_minutes(2)
    fleet.becomes(1)
    eventually(lambda: fleet.written() == {*first, *second})

    assert stacks.delete(NAME) == "DELETE_COMPLETE"
    assert find_leftovers("queued", LOCAL, fleet.stack.access) == []
    assert fleet.policies() == {}
    assert fleet.stack.running() == []
    left = stacks.client("cloudwatch").describe_alarms()["MetricAlarms"]
    assert [each["AlarmName"] for each in left] == []


def test_a_canary_that_fails_is_undone_and_no_request_is_lost(fleet):
    stacks = fleet.stack.stacks
    assert stacks.create(NAME, fleet.template("guarded")) == "CREATE_COMPLETE"

    def described() -> dict[str, Any]:
        return fleet.sagemaker.describe_endpoint(EndpointName=NAME)

    old = described()["EndpointConfigName"]
    stacks.start_update(NAME, fleet.template("guarded", "failing"))
    eventually(lambda: described().get("PendingDeploymentSummary"))
    sent = list[str]()

    def some_failed() -> bool:
        sent.extend(fleet.send(f"during-{len(sent)}"))
        return any("/failed/" in place for place in fleet.written())

    eventually(some_failed)
    eventually(lambda: len(fleet.written()) == len(sent))
    fleet.pass_minutes(1)
    assert stacks.settled(NAME) == "UPDATE_ROLLBACK_COMPLETE"
    assert described()["EndpointConfigName"] == old
    # The queue outlives the update, and the old fleet answers what comes now.
    answered = set(fleet.written())
    after = fleet.send("one", "two", "three")
    eventually(lambda: fleet.written() == answered | set(after))
    troubles = find_status(NAME, fleet.stack.access, plan=None, log_line_count=0).troubles()
    assert any("ServerErrorRate" in line and "during the rollout" in line for line in troubles)
    assert stacks.delete(NAME) == "DELETE_COMPLETE"


def test_alarms_tell_failures_old_requests_and_a_full_fleet(fleet):
    assert fleet.stack.stacks.create(NAME, fleet.template(ONE)) == "CREATE_COMPLETE"
    # A request that the caller got wrong raises no alarm on the server's side.
    refused = fleet.send("error 400 no such field", "fine")
    eventually(lambda: len(fleet.written()) == len(refused))
    fleet.pass_minutes(1)
    assert fleet.raised() == set()
    fleet.send("error 500 broken")
    eventually(lambda: len(fleet.written()) == len(refused) + 1)
    fleet.pass_minutes_until_raised("ServerErrorRate")
    assert fleet.raised() == {"ServerErrorRate"}
    # The only worker is busy, and further requests wait.
    fleet.send("sleep 2", "after", "later")
    # An age of more than 100 seconds is measured in the fourth minute at the latest.
    fleet.pass_minutes_until_raised("OldestRequest")
    fleet.scale(3)
    fleet.send("sleep 2", "sleep 2", "sleep 2")
    # The present minute begins with another number of instances.
    fleet.pass_minutes_until_raised("AtMaxCapacity")
    eventually(lambda: len(fleet.written()) == 9, seconds=30)
    assert fleet.stack.stacks.delete(NAME) == "DELETE_COMPLETE"
