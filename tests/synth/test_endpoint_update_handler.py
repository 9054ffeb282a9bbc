"""The function around an endpoint's update, on its own: an account in memory, call by call."""

# ruff: noqa: N803  # the members of AWS's requests

from __future__ import annotations

import copy
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
SCALING = {
    "MinCapacity": "2",
    "MaxCapacity": "6",
    "PolicyName": "invocations-per-instance",
    "PredefinedMetricType": "SageMakerVariantInvocationsPerInstance",
    "TargetValue": "600",
    "ScaleInCooldown": "300",
    "ScaleOutCooldown": "60",
}
POLICY = {
    "TargetValue": 600.0,
    "PredefinedMetricSpecification": {
        "PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"
    },
    "ScaleInCooldown": 300,
    "ScaleOutCooldown": 60,
}


def variant(name: str, *types: str, scaled: bool = True) -> dict[str, Any]:
    scaling = {"Scaling": SCALING} if scaled else {}
    return {"Name": name, "InstanceTypes": list(types), **scaling}


def resource_id(name: str) -> str:
    return f"endpoint/{ENDPOINT}/variant/{name}"


class Account:
    """SageMaker, Application Auto Scaling and CloudFormation, as far as the function uses them."""

    def __init__(self, **live: str) -> None:
        self.live = live
        self.statuses = ["InService"]
        self.stack_status = "UPDATE_IN_PROGRESS"
        self.targets: dict[str, dict[str, Any]] = {}
        self.policies: dict[str, dict[str, Any]] = {}
        self.schedules: dict[str, list[dict[str, Any]]] = {}
        self.made: list[dict[str, str]] = []
        self.calls: list[str] = []
        self.waits: list[float] = []
        self.concurrent_updates = 0
        for name in live:
            self.make(name)

    def make(self, name: str) -> None:
        """Has the stack make a target and its policy."""
        self.targets[resource_id(name)] = {"MinCapacity": 2, "MaxCapacity": 6}
        self.policies[resource_id(name)] = {"invocations-per-instance": POLICY}
        arn = "arn:aws:autoscaling:eu-west-1:210987654321:scalingPolicy:0"
        self.made += [
            {
                "ResourceType": "AWS::ApplicationAutoScaling::ScalableTarget",
                "PhysicalResourceId": f"{resource_id(name)}|{DIMENSION}|sagemaker",
                "ResourceStatus": "CREATE_COMPLETE",
            },
            {
                "ResourceType": "AWS::ApplicationAutoScaling::ScalingPolicy",
                "PhysicalResourceId": (
                    f"{arn}:resource/sagemaker/{resource_id(name)}"
                    ":policyName/invocations-per-instance"
                ),
                "ResourceStatus": "UPDATE_COMPLETE",
            },
        ]

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
        return {
            "ScalingPolicies": [
                {
                    "PolicyName": name,
                    "PolicyType": "TargetTrackingScaling",
                    "ResourceId": ResourceId,
                    "TargetTrackingScalingPolicyConfiguration": configuration,
                }
                for name, configuration in self.policies.get(ResourceId, {}).items()
            ]
        }

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
        self,
        *,
        ResourceId: str,
        PolicyName: str,
        TargetTrackingScalingPolicyConfiguration: dict[str, Any],
        **_: Any,
    ) -> None:
        assert ResourceId in self.targets
        self.calls.append(f"put {PolicyName} of {ResourceId.rpartition('/')[2]}")
        self.policies.setdefault(ResourceId, {})[PolicyName] = (
            TargetTrackingScalingPolicyConfiguration
        )


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
    before = copy.deepcopy(account.policies)
    wanted = variant("a", "ml.g5.2xlarge")
    ask(account, "Update", wanted)
    account.live = {"a": "ml.g5.2xlarge"}
    answer = ask(account, "Update", wanted, step="After")
    assert answer["Reason"] == "registered a; put the policy invocations-per-instance of a"
    assert account.targets == {resource_id("a"): {"MinCapacity": 2, "MaxCapacity": 6}}
    assert account.policies == before


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
    targets, policies = copy.deepcopy(account.targets), copy.deepcopy(account.policies)
    undo = ask(account, "Create", step="Undo")["PhysicalResourceId"]
    assert len(undo) <= 1024
    ask(account, "Update", variant("b", "ml.g5.2xlarge"))
    assert account.targets == {}
    account.stack_status = "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"
    answer = ask(account, "Delete", step="Undo", PhysicalResourceId=undo)
    assert answer["Reason"] == "registered a as it was; registered b as it was"
    assert account.targets == targets
    assert account.policies == policies


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
    account.schedules[resource_id("a")] = [
        {
            "ScheduledActionName": f"{day}-{hour}",
            "Schedule": f"cron({7 * hour} {hour} ? * {day.upper()} *)",
            "Timezone": "America/Argentina/Buenos_Aires",
            "ScalableTargetAction": {"MinCapacity": hour, "MaxCapacity": 3 * hour},
        }
        for day in ("mon", "tue", "wed", "thu")
        for hour in (3, 5, 7, 8, 11)
    ]
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
    """Lambda has the file, the standard library and boto3."""
    folder = Path(stacks.endpoint_update.__file__).parent
    script = "import sys, handler; print(*{name.partition('.')[0] for name in sys.modules})"
    command = [
        sys.executable,
        "-I",
        "-c",
        f"import sys; sys.path.insert(0, {str(folder)!r}); {script}",
    ]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "handler" in loaded
    assert {"slipway", "stacks", "boto3", "aws_cdk"} & set(loaded) == set()
