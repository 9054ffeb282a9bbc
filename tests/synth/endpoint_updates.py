"""The function around an endpoint's update, called for an account in memory."""

# ruff: noqa: N803  # the members of AWS's requests

from __future__ import annotations

import itertools
from typing import Any

from botocore.exceptions import ClientError

from slipway.stacks.functions.endpoint_update import handler

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
TAGS = {"slipway:model": "tiny"}


def resource_id(name: str) -> str:
    return f"endpoint/{ENDPOINT}/variant/{name}"


def refusal(code: str, message: str, operation: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, operation)


def page_of(member: str, items: list[dict[str, Any]], token: str) -> dict[str, Any]:
    """Returns a page, which has one item."""
    number = int(token or 0)
    more = {"NextToken": str(number + 1)} if number + 1 < len(items) else {}
    return {member: items[number : number + 1], **more}


class Account:
    """SageMaker, Application Auto Scaling, CloudFormation and CloudWatch, as far as needed.

    `configs` has the instance types of each variant of each endpoint configuration.
    """

    def __init__(self, **live: str) -> None:
        self.configs = {"now": live}
        self.asynchronous: set[str] = set()
        self.served = "now"
        self.weights: dict[str, float] = {}
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
        self.denied = 0
        self.calls_to_live: float = float("inf")
        self.clock = itertools.count()
        for name in live:
            self.make(name)
        self._remember("EndpointUpdateUndo", f"{ENDPOINT}-EndpointUpdateUndo-")

    def begin(self, config: str = "next", **variants: str) -> str:
        self.configs[config] = variants
        self.stack_status = "UPDATE_IN_PROGRESS"
        name = f"EndpointUpdateUndo{next(self.clock)}"
        answer = ask(self, "Create", step="Undo", LogicalResourceId=name)
        self._remember(name, answer["PhysicalResourceId"])
        return name

    def finish(self, undo: str, status: str = "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS") -> str:
        """Deletes an Undo, as CloudFormation does at the end; returns the answer's reason."""
        self.stack_status = status
        (item,) = [each for each in self.made if each.get("LogicalResourceId") == undo]
        physical_id = item["PhysicalResourceId"]
        ids = {"LogicalResourceId": undo, "PhysicalResourceId": physical_id}
        answer = ask(self, "Delete", step="Undo", **ids)
        assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", physical_id)
        self.made.remove(item)
        return answer["Reason"]

    def _remember(
        self,
        logical_id: str,
        physical_id: str,
        kind: str = "Custom::SlipwayScaling",
        status: str = "CREATE_COMPLETE",
    ) -> None:
        self.made.append(
            {
                "ResourceType": kind,
                "LogicalResourceId": logical_id,
                "PhysicalResourceId": physical_id,
                "ResourceStatus": status,
                "LastUpdatedTimestamp": next(self.clock),
            }
        )

    def make(self, name: str) -> None:
        self.targets[resource_id(name)] = {"MinCapacity": 2, "MaxCapacity": 6}
        self.make_policy(name, POLICY)
        kind = "AWS::ApplicationAutoScaling::ScalableTarget"
        target_id = f"{resource_id(name)}|{DIMENSION}|sagemaker"
        self._remember(f"ScalingTarget{name}", target_id, kind)

    def make_policy(self, name: str, policy: dict[str, Any]) -> str:
        arn = self.put_policy(resource_id(name), policy)
        kind = "AWS::ApplicationAutoScaling::ScalingPolicy"
        self._remember(f"Scaling{policy['PolicyName']}{name}", arn, kind, "UPDATE_COMPLETE")
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
        self._remember(name, name, "AWS::CloudWatch::Alarm")

    def definitions(self) -> dict[str, dict[str, Any]]:
        """The policies of each target, without what differs each time that they are put."""
        return {
            resource: {
                name: {key: value for key, value in policy.items() if key != "PolicyARN"}
                for name, policy in policies.items()
            }
            for resource, policies in self.policies.items()
        }

    def client(self, _service: str) -> Any:
        return _Mortal(self)

    # CloudFormation

    def describe_stacks(self, **_: Any) -> dict[str, Any]:
        if self.denied:
            self.denied -= 1
            raise refusal("AccessDenied", "not authorized", "DescribeStacks")
        return {"Stacks": [{"StackStatus": self.stack_status}]}

    def list_stack_resources(self, *, StackName: str, NextToken: str = "") -> dict[str, Any]:
        assert StackName == STACK
        return page_of("StackResourceSummaries", self.made, NextToken)

    # SageMaker

    def describe_endpoint(self, *, EndpointName: str) -> dict[str, Any]:
        assert EndpointName == ENDPOINT
        if not self.configs[self.served]:
            missing = 'Could not find endpoint "x"'
            raise refusal("ValidationException", missing, "DescribeEndpoint")
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return {
            "EndpointArn": "arn:endpoint",
            "EndpointStatus": status,
            "EndpointConfigName": self.served,
            "ProductionVariants": [
                {"VariantName": name, "DesiredWeight": self.weights.get(name, 1.0)}
                for name in self.configs[self.served]
            ],
        }

    def update_endpoint_weights_and_capacities(
        self, *, EndpointName: str, DesiredWeightsAndCapacities: list[dict[str, Any]]
    ) -> None:
        assert EndpointName == ENDPOINT
        self.calls.append("weights")
        self.weights |= {
            each.pop("VariantName"): each.pop("DesiredWeight")
            for each in DesiredWeightsAndCapacities
        }
        # A capacity would undo what scaling has chosen.
        assert not any(DesiredWeightsAndCapacities)

    def list_tags(self, *, ResourceArn: str) -> dict[str, Any]:
        assert ResourceArn == "arn:endpoint"
        tags = {**TAGS, "aws:cloudformation:stack-name": "tiny-local"}
        return {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}

    def describe_endpoint_config(self, *, EndpointConfigName: str) -> dict[str, Any]:
        variants: list[dict[str, Any]] = []
        for name, types in self.configs[EndpointConfigName].items():
            first, *others = types.split()
            pools = [
                {"InstanceType": kind, "Priority": number}
                for number, kind in enumerate([first, *others], 1)
            ]
            kinds = {"InstancePools": pools[::-1]} if others else {"InstanceType": first}
            variants.append({"VariantName": name, **kinds})
        is_async = EndpointConfigName in self.asynchronous
        queue = {"AsyncInferenceConfig": {}} if is_async else {}
        return {"ProductionVariants": variants, **queue}

    # Application Auto Scaling

    def describe_scalable_targets(self, *, ResourceIds: list[str], **_: Any) -> dict[str, Any]:
        assert ResourceIds
        found = [
            {"ResourceId": key, **self.targets[key]} for key in ResourceIds if key in self.targets
        ]
        return {"ScalableTargets": found}

    def describe_scaling_policies(
        self, *, ResourceId: str, NextToken: str = "", **_: Any
    ) -> dict[str, Any]:
        policies = self.policies.get(ResourceId, {}).values()
        found = [{"ResourceId": ResourceId, **each} for each in policies]
        return page_of("ScalingPolicies", found, NextToken)

    def deregister_scalable_target(self, *, ResourceId: str, **_: Any) -> None:
        if self.concurrent_updates:
            self.concurrent_updates -= 1
            raise refusal("ConcurrentUpdateException", "Try again.", "DeregisterScalableTarget")
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
        actions = self.schedules.get(ResourceId, [])
        found = [{"ScheduledActionARN": "arn", **each} for each in actions]
        return page_of("ScheduledActions", found, NextToken)

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


class KilledError(BaseException):
    """The function ended without an answer."""


class _Mortal:
    """An account whose caller is killed after some calls, each of which has an effect."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self._account, name)
        if not callable(operation):
            return operation

        def call(**members: Any) -> Any:
            answer = operation(**members)
            self._account.calls_to_live -= 1
            if self._account.calls_to_live < 0:
                raise KilledError
            return answer

        return call


def ask(
    account: Account,
    kind: str,
    step: str = "Before",
    config: str = "next",
    scaled: tuple[str, ...] = ("a",),
    weights: dict[str, str] | None = None,
    **fields: Any,
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
            **({} if step == "Undo" else {"ConfigName": config, "Scaled": list(scaled)}),
            **({} if weights is None else {"Weights": weights}),
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
