"""The function around an endpoint's update, on its own: an account in memory, call by call."""

# ruff: noqa: N803  # the members of AWS's requests

from __future__ import annotations

import copy
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

import stacks.endpoint_update
from stacks.endpoint_update import handler

ENDPOINT = "tiny-local"
STACK = "arn:aws:cloudformation:eu-west-1:210987654321:stack/tiny-local/0"
URL = "https://cloudformation-custom-resource-response.s3.amazonaws.com/arn?Signature=a%2Bb"
DIMENSION = "sagemaker:variant:DesiredInstanceCount"
POLICY = {
    "PolicyName": "invocations-per-instance",
    "PolicyType": "TargetTrackingScaling",
    "TargetTrackingScalingPolicyConfiguration": {
        "TargetValue": 600.0,
        "PredefinedMetricSpecification": {
            "PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"
        },
        "ScaleInCooldown": 300,
        "ScaleOutCooldown": 60,
    },
}
STEPS = {
    "PolicyName": "steps",
    "PolicyType": "StepScaling",
    "StepScalingPolicyConfiguration": {
        "AdjustmentType": "ChangeInCapacity",
        "Cooldown": 60,
        "StepAdjustments": [{"MetricIntervalLowerBound": 0.0, "ScalingAdjustment": 2}],
    },
}
SCALING = {"MinCapacity": "2", "MaxCapacity": "6", "Policies": json.dumps([POLICY])}
STEPPED = SCALING | {"Policies": json.dumps([POLICY, STEPS])}
TOPIC = "arn:aws:sns:eu-west-1:210987654321:topic"


def variant(name: str, *types: str, scaled: bool = True) -> dict[str, Any]:
    scaling = {"Scaling": SCALING} if scaled else {}
    return {"Name": name, "InstanceTypes": list(types), **scaling}


def resource_id(name: str) -> str:
    return f"endpoint/{ENDPOINT}/variant/{name}"


class Account:
    """SageMaker, Application Auto Scaling, CloudFormation and CloudWatch, as far as needed."""

    def __init__(self, **live: str) -> None:
        self.live = live
        self.statuses = ["InService"]
        self.stack_status = "UPDATE_IN_PROGRESS"
        self.targets: dict[str, dict[str, Any]] = {}
        self.policies: dict[str, dict[str, Any]] = {}
        self.schedules: dict[str, list[dict[str, Any]]] = {}
        self.alarms: dict[str, dict[str, Any]] = {}
        self.numbers = itertools.count()
        self.made: list[dict[str, str]] = []
        self.calls: list[str] = []
        self.waits: list[float] = []
        self.concurrent_updates = 0
        for name in live:
            self.make(name)

    def make(self, name: str) -> None:
        """Has the stack make a target and its policy."""
        self.targets[resource_id(name)] = {"MinCapacity": 2, "MaxCapacity": 6}
        self.make_policy(name, POLICY)
        self.made.insert(
            0,
            {
                "ResourceType": "AWS::ApplicationAutoScaling::ScalableTarget",
                "PhysicalResourceId": f"{resource_id(name)}|{DIMENSION}|sagemaker",
                "ResourceStatus": "CREATE_COMPLETE",
            },
        )

    def make_policy(self, name: str, policy: dict[str, Any]) -> str:
        """Has the stack make a policy of a target; returns its ARN."""
        arn = self.put_policy(resource_id(name), policy)
        self.made.append(
            {
                "ResourceType": "AWS::ApplicationAutoScaling::ScalingPolicy",
                "PhysicalResourceId": arn,
                "ResourceStatus": "UPDATE_COMPLETE",
            }
        )
        return arn

    def put_policy(self, resource: str, policy: dict[str, Any]) -> str:
        name = policy["PolicyName"]
        arn = (
            f"arn:aws:autoscaling:eu-west-1:210987654321:scalingPolicy:{next(self.numbers)}"
            f":resource/sagemaker/{resource}:policyName/{name}"
        )
        self.policies.setdefault(resource, {})[name] = {"PolicyARN": arn, **policy}
        return arn

    def make_alarm(self, name: str, *actions: str) -> None:
        """Has the stack make an alarm."""
        self.alarms[name] = {
            "AlarmName": name,
            "AlarmActions": list(actions),
            "ActionsEnabled": True,
            "InsufficientDataActions": [],
            "MetricName": "InvocationsPerInstance",
            "Namespace": "AWS/SageMaker",
            "Statistic": "Sum",
            "Period": 60,
            "EvaluationPeriods": 1,
            "Threshold": 0.0,
            "ComparisonOperator": "GreaterThanOrEqualToThreshold",
        }
        self.made.append(
            {
                "ResourceType": "AWS::CloudWatch::Alarm",
                "PhysicalResourceId": name,
                "ResourceStatus": "CREATE_COMPLETE",
            }
        )

    def definitions(self) -> dict[str, dict[str, Any]]:
        """The policies of each target, without what differs each time that they are put."""
        return {
            resource: {
                name: {key: value for key, value in policy.items() if key != "PolicyARN"}
                for name, policy in policies.items()
            }
            for resource, policies in self.policies.items()
        }

    def client(self, _service: str) -> Account:
        return self

    # CloudFormation

    def describe_stacks(self, **_: Any) -> dict[str, Any]:
        return {"Stacks": [{"StackStatus": self.stack_status}]}

    def list_stack_resources(self, *, StackName: str, NextToken: str = "") -> dict[str, Any]:
        assert StackName == STACK
        page = int(NextToken or 0)
        more = {"NextToken": str(page + 1)} if page + 1 < len(self.made) else {}
        return {"StackResourceSummaries": self.made[page : page + 1], **more}

    # SageMaker

    def describe_endpoint(self, *, EndpointName: str) -> dict[str, Any]:
        assert EndpointName == ENDPOINT
        if not self.live:
            raise ClientError(
                {
                    "Error": {
                        "Code": "ValidationException",
                        "Message": 'Could not find endpoint "x"',
                    }
                },
                "DescribeEndpoint",
            )
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return {"EndpointStatus": status, "EndpointConfigName": "c"}

    def describe_endpoint_config(self, **_: Any) -> dict[str, Any]:
        variants: list[dict[str, Any]] = []
        for name, types in self.live.items():
            first, *others = types.split()
            pools = [
                {"InstanceType": kind, "Priority": number}
                for number, kind in enumerate([first, *others], 1)
            ]
            kinds = {"InstancePools": pools[::-1]} if others else {"InstanceType": first}
            variants.append({"VariantName": name, **kinds})
        return {"ProductionVariants": variants}

    # Application Auto Scaling

    def describe_scalable_targets(self, *, ResourceIds: list[str], **_: Any) -> dict[str, Any]:
        assert ResourceIds
        found = [
            {"ResourceId": key, **self.targets[key]} for key in ResourceIds if key in self.targets
        ]
        return {"ScalableTargets": found}

    def describe_scaling_policies(self, *, ResourceId: str, **_: Any) -> dict[str, Any]:
        policies = self.policies.get(ResourceId, {}).values()
        return {"ScalingPolicies": [{"ResourceId": ResourceId, **policy} for policy in policies]}

    def deregister_scalable_target(self, *, ResourceId: str, **_: Any) -> None:
        if self.concurrent_updates:
            self.concurrent_updates -= 1
            raise ClientError(
                {"Error": {"Code": "ConcurrentUpdateException", "Message": "Try again."}},
                "DeregisterScalableTarget",
            )
        self.calls.append(f"deregister {ResourceId.rpartition('/')[2]}")
        del self.targets[ResourceId]
        self.policies.pop(ResourceId, None)
        self.schedules.pop(ResourceId, None)

    def register_scalable_target(
        self, *, ServiceNamespace: str, ScalableDimension: str, ResourceId: str, **target: Any
    ) -> None:
        assert (ServiceNamespace, ScalableDimension) == ("sagemaker", DIMENSION)
        self.calls.append(f"register {ResourceId.rpartition('/')[2]}")
        self.targets[ResourceId] = target

    def describe_scheduled_actions(
        self, *, ResourceId: str, NextToken: str = "", **_: Any
    ) -> dict[str, Any]:
        page, actions = int(NextToken or 0), self.schedules.get(ResourceId, [])
        more = {"NextToken": str(page + 1)} if page + 1 < len(actions) else {}
        found = [{"ScheduledActionARN": "arn", **each} for each in actions[page : page + 1]]
        return {"ScheduledActions": found, **more}

    def put_scheduled_action(
        self, *, ServiceNamespace: str, ScalableDimension: str, ResourceId: str, **action: Any
    ) -> None:
        assert (ServiceNamespace, ScalableDimension) == ("sagemaker", DIMENSION)
        assert ResourceId in self.targets
        self.schedules.setdefault(ResourceId, []).append(action)

    def put_scaling_policy(
        self, *, ServiceNamespace: str, ScalableDimension: str, ResourceId: str, **policy: Any
    ) -> None:
        assert (ServiceNamespace, ScalableDimension) == ("sagemaker", DIMENSION)
        assert ResourceId in self.targets
        self.calls.append(f"put {policy['PolicyName']} of {ResourceId.rpartition('/')[2]}")
        self.put_policy(ResourceId, policy)

    # CloudWatch

    def describe_alarms(self, *, AlarmNames: list[str], MaxRecords: int) -> dict[str, Any]:
        assert 0 < len(AlarmNames) <= MaxRecords == 100
        described = {"StateValue": "OK", "AlarmArn": "arn"}
        return {"MetricAlarms": [described | self.alarms[name] for name in AlarmNames]}

    def put_metric_alarm(self, *, AlarmName: str, **definition: Any) -> None:
        self.calls.append(f"put the alarm {AlarmName}")
        self.alarms[AlarmName] = {"AlarmName": AlarmName, **definition}


def ask(
    account: Account, kind: str, *variants: dict[str, Any], step: str = "Before", **fields: Any
) -> dict[str, str]:
    """Calls the function as CloudFormation does and returns its answer."""
    event = {
        "RequestType": kind,
        "ResponseURL": URL,
        "StackId": STACK,
        "RequestId": "r",
        "LogicalResourceId": f"EndpointUpdate{step}",
        "ResourceProperties": {
            "EndpointName": ENDPOINT,
            "Step": step,
            "Variants": list(variants),
        },
        **fields,
    }
    answers: list[tuple[str, dict[str, str]]] = []
    handler.handle(
        event, account.client, lambda *answer: answers.append(answer), account.waits.append
    )
    ((url, answer),) = answers
    assert url == URL
    assert {answer[key] for key in ("StackId", "RequestId")} == {STACK, "r"}
    return answer


CHANGES = {
    "another type": [variant("a", "ml.g5.2xlarge")],
    "a pool": [variant("a", "ml.g5.xlarge", "ml.g5.2xlarge")],
    "renamed": [variant("b", "ml.g5.xlarge")],
    "dropped": [variant("a", "ml.g5.xlarge", scaled=False)],
    "dropped with another type": [variant("a", "ml.g5.2xlarge", scaled=False)],
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_variant_is_deregistered_before_the_update(change: str):
    account = Account(a="ml.g5.xlarge", other="ml.g5.xlarge")
    answer = ask(account, "Update", *CHANGES[change], variant("other", "ml.g5.xlarge"))
    assert (answer["Status"], answer["Reason"]) == ("SUCCESS", "deregistered a")
    assert account.calls == ["deregister a"]
    # Once more, as when Lambda is called twice: nothing is left to do.
    ask(account, "Update", *CHANGES[change], variant("other", "ml.g5.xlarge"))
    assert account.calls == ["deregister a"]


def test_after_the_update_the_target_and_its_policy_are_made_anew():
    account = Account(a="ml.g5.xlarge")
    before = account.definitions()
    wanted = variant("a", "ml.g5.2xlarge")
    ask(account, "Update", wanted)
    account.live = {"a": "ml.g5.2xlarge"}
    answer = ask(account, "Update", wanted, step="After")
    assert answer["Reason"] == "registered a; put the policy invocations-per-instance of a"
    assert account.targets == {resource_id("a"): {"MinCapacity": 2, "MaxCapacity": 6}}
    assert account.definitions() == before


def test_what_the_stack_has_not_made_is_left_to_cloudformation_and_to_others():
    account = Account(a="ml.g5.xlarge")
    account.made.clear()
    account.live |= {"new": "ml.g5.xlarge"}
    changed = [variant("a", "ml.g5.2xlarge"), variant("new", "ml.g5.xlarge")]
    assert ask(account, "Update", *changed)["Reason"] == "Nothing to do."
    assert account.calls == []


def test_a_target_whose_making_failed_is_not_the_stacks():
    account = Account(a="ml.g5.xlarge")
    for resource in account.made:
        resource["ResourceStatus"] = "CREATE_FAILED"
    ask(account, "Update", variant("a", "ml.g5.2xlarge"))
    assert account.calls == []


def test_unchanged_variants_cause_no_work():
    account = Account(a="ml.g5.xlarge", pool="ml.g5.xlarge ml.g5.2xlarge")
    same = [variant("a", "ml.g5.xlarge"), variant("pool", "ml.g5.xlarge", "ml.g5.2xlarge")]
    for kind, step in (("Create", "Before"), ("Update", "Before"), ("Update", "After")):
        assert ask(account, kind, *same, step=step)["Reason"] == "Nothing to do."
    assert account.calls == []
    assert account.waits == []


def test_a_new_stack_has_no_endpoint_yet():
    account = Account()
    account.make("a")
    assert ask(account, "Create", variant("a", "ml.g5.xlarge"))["Status"] == "SUCCESS"
    assert account.calls == []


def test_a_busy_endpoint_is_waited_for_and_not_for_ever():
    account = Account(a="ml.g5.xlarge")
    account.statuses = ["Updating", "Updating", "InService"]
    assert ask(account, "Update", variant("a", "ml.g5.2xlarge"))["Status"] == "SUCCESS"
    assert account.waits == [10.0, 10.0]
    account.statuses = ["Updating"]
    answer = ask(account, "Update", variant("a", "ml.g5.2xlarge"))
    assert (answer["Status"], answer["Reason"]) == (
        "FAILED",
        "The endpoint tiny-local is still Updating. Wait until it is InService, then deploy again "
        "(or continue the rollback of the stack).",
    )


def test_a_concurrent_update_is_tried_again():
    account = Account(a="ml.g5.xlarge")
    account.concurrent_updates = 2
    assert ask(account, "Update", variant("a", "ml.g5.2xlarge"))["Status"] == "SUCCESS"
    assert account.calls == ["deregister a"]
    account = Account(a="ml.g5.xlarge")
    account.concurrent_updates = 9
    answer = ask(account, "Update", variant("a", "ml.g5.2xlarge"))
    assert answer["Status"] == "FAILED"
    assert "Try again." in answer["Reason"]


def test_a_stack_of_an_older_slipway_is_not_changed_at_once():
    account = Account(a="ml.g5.xlarge")
    answer = ask(account, "Create", variant("a", "ml.g5.2xlarge"))
    assert (answer["Status"], answer["Reason"]) == (
        "FAILED",
        "The autoscaling of a was deployed by an older Slipway, which cannot be undone together "
        "with a change of instances or variants. Deploy once without that change, then deploy the "
        "change.",
    )
    assert account.calls == []
    # Autoscaling alone can be dropped: CloudFormation deletes the target after the update.
    assert ask(account, "Create", variant("a", "ml.g5.xlarge", scaled=False))["Status"] == "SUCCESS"
    assert account.calls == []


def test_a_rolled_back_deployment_puts_the_targets_back_as_they_were():
    account = Account(a="ml.g5.xlarge", b="ml.g5.xlarge")
    suspended = {"DynamicScalingInSuspended": True}
    account.targets[resource_id("a")]["SuspendedState"] = suspended
    targets, policies = copy.deepcopy(account.targets), account.definitions()
    undo = ask(account, "Create", step="Undo")["PhysicalResourceId"]
    assert len(undo) <= 1024
    ask(account, "Update", variant("b", "ml.g5.2xlarge"))
    assert account.targets == {}
    account.stack_status = "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"
    answer = ask(account, "Delete", step="Undo", PhysicalResourceId=undo)
    assert answer["Reason"] == "registered a as it was; registered b as it was"
    assert account.targets == targets
    assert account.definitions() == policies


@pytest.mark.parametrize(
    "status", ["UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "DELETE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS"]
)
def test_a_deployment_that_is_not_taken_back_is_not_undone(status: str):
    account = Account(a="ml.g5.xlarge")
    undo = ask(account, "Create", step="Undo")["PhysicalResourceId"]
    ask(account, "Update", variant("b", "ml.g5.xlarge"))
    account.stack_status = status
    answer = ask(account, "Delete", step="Undo", PhysicalResourceId=undo)
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", undo)
    assert account.targets == {}


# As a custom resource has them: CloudFormation makes every number a text.
SCHEDULES = [
    {
        "ScheduledActionName": "workday",
        "Schedule": "cron(0 7 ? * MON-FRI *)",
        "Timezone": "Europe/Zurich",
        "ScalableTargetAction": {"MinCapacity": "4", "MaxCapacity": "12"},
    },
    {
        "ScheduledActionName": "hourly",
        "Schedule": "rate(1 hour)",
        "ScalableTargetAction": {"MinCapacity": "2", "MaxCapacity": "6"},
    },
]
PUT = [
    SCHEDULES[0] | {"ScalableTargetAction": {"MinCapacity": 4, "MaxCapacity": 12}},
    SCHEDULES[1] | {"ScalableTargetAction": {"MinCapacity": 2, "MaxCapacity": 6}},
]


def test_a_target_that_is_registered_again_has_its_schedules():
    account = Account(a="ml.g5.xlarge")
    account.schedules[resource_id("a")] = copy.deepcopy(PUT)
    changed = variant("a", "ml.g5.2xlarge") | {"Scaling": SCALING | {"Schedules": SCHEDULES}}
    ask(account, "Update", changed)
    assert account.schedules == {}
    account.live["a"] = "ml.g5.2xlarge"
    ask(account, "Update", changed, step="After")
    assert account.schedules == {resource_id("a"): PUT}
    # A target that stayed registered keeps them, and they are not put again.
    ask(account, "Update", changed, step="After")
    assert account.schedules == {resource_id("a"): PUT}


TWENTY_SCHEDULES = [
    {
        "ScheduledActionName": f"{day}-{hour}",
        "Schedule": f"cron({7 * hour} {hour} ? * {day.upper()} *)",
        "Timezone": "America/Argentina/Buenos_Aires",
        "ScalableTargetAction": {"MinCapacity": hour, "MaxCapacity": 3 * hour},
    }
    for day in ("mon", "tue", "wed", "thu")
    for hour in (3, 5, 7, 8, 11)
]


@pytest.fixture
def stepped() -> Account:
    """A stack with a step policy, its alarm, and an alarm of another kind."""
    account = Account(a="ml.g5.xlarge")
    account.make_alarm("steps", account.make_policy("a", STEPS))
    account.make_alarm("errors", TOPIC)
    return account


def test_the_alarm_of_a_step_policy_follows_it(stepped: Account):
    first = stepped.alarms["steps"]
    wanted = variant("a", "ml.g5.2xlarge") | {"Scaling": STEPPED}
    ask(stepped, "Update", wanted)
    assert stepped.policies == {}
    stepped.live["a"] = "ml.g5.2xlarge"
    answer = ask(stepped, "Update", wanted, step="After")
    assert answer["Reason"] == (
        "registered a; put the policy invocations-per-instance of a; put the policy steps of a"
    )
    assert stepped.definitions() == {
        resource_id("a"): {"invocations-per-instance": POLICY, "steps": STEPS}
    }
    assert stepped.alarms["steps"] == first
    answer = ask(stepped, "Update", wanted, step="Alarms")
    assert answer["Reason"] == "pointed the alarm steps at its policy"
    live = stepped.policies[resource_id("a")]["steps"]["PolicyARN"]
    assert first["AlarmActions"] != [live]
    kept = {key: value for key, value in first.items() if key != "InsufficientDataActions"}
    assert stepped.alarms["steps"] == kept | {"AlarmActions": [live]}
    assert stepped.alarms["errors"]["AlarmActions"] == [TOPIC]
    # CloudFormation may put the alarm again, with the ARN that it knows.
    stepped.alarms["steps"] = first
    ask(stepped, "Update", wanted, step="Alarms")
    assert stepped.alarms["steps"]["AlarmActions"] == [live]


def test_an_alarm_with_a_live_policy_is_left_alone(stepped: Account):
    for kind in ("Create", "Update", "Delete"):
        answer = ask(stepped, kind, variant("a", "ml.g5.xlarge"), step="Alarms")
        assert answer["Reason"] == "Nothing to do."
    assert stepped.calls == []


def test_a_deployment_that_is_taken_back_points_the_alarms_back(stepped: Account):
    policies = stepped.definitions()
    undo = ask(stepped, "Create", step="Undo")["PhysicalResourceId"]
    ask(stepped, "Update", variant("b", "ml.g5.xlarge"))
    assert stepped.policies == {}
    stepped.stack_status = "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"
    answer = ask(stepped, "Delete", step="Undo", PhysicalResourceId=undo)
    assert answer["Reason"] == "registered a as it was; pointed the alarm steps at its policy"
    assert stepped.definitions() == policies
    live = stepped.policies[resource_id("a")]["steps"]["PolicyARN"]
    assert stepped.alarms["steps"]["AlarmActions"] == [live]


def test_ten_steps_and_twenty_schedules_are_remembered():
    account = Account(a="ml.g5.xlarge")
    bounds = [1.5, 1.75, 2, 2.25, 2.5, 3, 3.5, 4, 5, 7.5]
    adjustments = [
        {
            "MetricIntervalLowerBound": 617.0 * bound,
            "MetricIntervalUpperBound": 617.0 * (bound + 0.25),
            "ScalingAdjustment": number + 1,
        }
        for number, bound in enumerate(bounds)
    ]
    configuration = STEPS["StepScalingPolicyConfiguration"] | {"StepAdjustments": adjustments}  # type: ignore[operator]
    account.make_policy("a", STEPS | {"StepScalingPolicyConfiguration": configuration})
    account.schedules[resource_id("a")] = TWENTY_SCHEDULES
    answer = ask(account, "Create", step="Undo")
    assert answer["Status"] == "SUCCESS"
    assert len(answer["PhysicalResourceId"]) <= 1024


def test_a_deployment_that_is_taken_back_puts_the_schedules_back():
    account = Account(a="ml.g5.xlarge")
    account.schedules[resource_id("a")] = copy.deepcopy(PUT)
    undo = ask(account, "Create", step="Undo")["PhysicalResourceId"]
    ask(account, "Update", variant("b", "ml.g5.xlarge"))
    assert account.schedules == {}
    account.stack_status = "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"
    answer = ask(account, "Delete", step="Undo", PhysicalResourceId=undo)
    assert answer["Reason"] == "registered a as it was"
    assert account.schedules == {resource_id("a"): PUT}


def test_twenty_schedules_are_remembered():
    account = Account(a="ml.g5.xlarge")
    account.schedules[resource_id("a")] = TWENTY_SCHEDULES
    answer = ask(account, "Create", step="Undo")
    assert answer["Status"] == "SUCCESS"
    assert len(answer["PhysicalResourceId"]) <= 1024


def test_an_id_that_is_not_its_own_is_deleted_without_work():
    account = Account(a="ml.g5.xlarge")
    account.stack_status = "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"
    answer = ask(account, "Delete", step="Undo", PhysicalResourceId="generated-by-cloudformation")
    assert answer["Status"] == "SUCCESS"


def test_an_error_is_an_answer():
    account = Account(a="ml.g5.xlarge")
    account.describe_endpoint_config = None  # type: ignore[assignment,method-assign]
    answer = ask(account, "Update", variant("a", "ml.g5.2xlarge"))
    assert answer["Status"] == "FAILED"
    assert "not callable" in answer["Reason"]


def test_the_id_is_the_same_for_life():
    account = Account()
    created = ask(account, "Create", step="After")["PhysicalResourceId"]
    assert created == "tiny-local-EndpointUpdateAfter-"
    assert ask(account, "Update", step="After", PhysicalResourceId="x")["PhysicalResourceId"] == "x"


def test_it_runs_alone():
    """Lambda has the package, the standard library and boto3."""
    folder = Path(stacks.endpoint_update.__file__).parents[1]
    script = (
        "import sys, endpoint_update.handler; "
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    command = [
        sys.executable,
        "-I",
        "-c",
        f"import sys; sys.path.insert(0, {str(folder)!r}); {script}",
    ]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "endpoint_update" in loaded
    assert {"slipway", "stacks", "boto3", "aws_cdk"} & set(loaded) == set()
