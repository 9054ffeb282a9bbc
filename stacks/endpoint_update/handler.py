"""The Lambda function that lets an autoscaled endpoint change. It runs alone: no import from here.

SageMaker refuses to remove a variant that is a scalable target, or to change its instance types.
CloudFormation updates the endpoint before it deletes targets, and does not create again a target
that is unchanged in the template. Custom resources therefore surround the endpoint and call this
function with the template's variants. Their property Step says which of them calls.

Before and After do the same, and may be called any number of times. They compare the stack's
scalable targets with the live endpoint:

- A registered target is deregistered if its variant is removed, gets other instance types, or is
  not scaled any more. Its scaling policies and scheduled actions are deleted with it.
- A wanted target that is not registered is registered, with its policy and scheduled actions, as
  soon as its variant runs as wanted.

A target that the stack has not created yet is left to CloudFormation, and so is a target that the
stack does not own.

Undo is a new resource with each change of the variants. CloudFormation creates it first, and it
then stores the targets in its physical id. CloudFormation deletes it when the deployment is over.
After a rollback, that is the last step of all, and missing targets are registered again as they
were.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.request
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Event = Mapping[str, Any]
# Sends an answer to an address.
Answer = Callable[[str, dict[str, str]], None]
# Returns boto3's client of a service.
Client = Callable[[str], Any]
# Waits for that many seconds.
Wait = Callable[[float], None]

_NAMESPACE = "sagemaker"
_DIMENSION = "sagemaker:variant:DesiredInstanceCount"
_POLICY_TYPE = "TargetTrackingScaling"
# Members of a scheduled action beside its bounds.
_SCHEDULE = ("ScheduledActionName", "Schedule", "Timezone")
_IN_PROGRESS = ("Creating", "Updating", "SystemUpdating", "RollingBack", "Deleting")
# Less than the 15 minutes that Lambda gives a function.
_ENDPOINT_POLLS, _ENDPOINT_POLL_SECONDS = 80, 10.0
_TARGET_POLLS, _TARGET_POLL_SECONDS = 10, 1.0
_ATTEMPTS, _ATTEMPT_PAUSE_SECONDS = 5, 3.0
_PUT_TIMEOUT_SECONDS = 10
_LONGEST_PHYSICAL_ID = 1024
# Responses have 4096 bytes at most; the rest of a response is identifiers.
_LONGEST_REASON = 2000


class RefusedError(Exception):
    """The deployment cannot go on; the message says what to do."""


def handler(event: Event, _context: object) -> None:
    """Handles a call of Lambda."""
    # Imported here, because only Lambda's own environment sets the client's region.
    import boto3

    client: Any = boto3.client  # its types list every service by name
    handle(event, client, put, time.sleep)


def handle(event: Event, client: Client, answer: Answer, wait: Wait) -> None:
    """Handles a request of CloudFormation and answers it.

    Args:
        event: the request of a custom resource.
        client: returns boto3's client of a service.
        answer: sends the answer to the request's ResponseURL.
        wait: waits for that many seconds.
    """
    properties = event["ResourceProperties"]
    name = properties["EndpointName"]
    own_id = f"{name}-{event['LogicalResourceId']}-"
    # Always the same id, because CloudFormation would take another id for a replacement.
    physical_id = event.get("PhysicalResourceId", own_id)
    step = (properties["Step"], event["RequestType"])
    status, done = "SUCCESS", list[str]()
    try:
        endpoint = Endpoint(name, event["StackId"], client, wait)
        if step == ("Undo", "Create"):
            physical_id = own_id + endpoint.remembered(_LONGEST_PHYSICAL_ID - len(own_id))
        elif step == ("Undo", "Delete") and physical_id.startswith(own_id):
            done = endpoint.restore(physical_id.removeprefix(own_id))
        elif "Undo" not in step and "Delete" not in step:
            tags = properties.get("TargetTags", {})
            done = endpoint.settle(properties["Variants"], tags, is_first="Create" in step)
    # Any error is answered, because without an answer the stack would hang.
    except Exception as error:
        status, done = "FAILED", [str(error)]
    reason = "; ".join(done) or "Nothing to do."
    print(json.dumps({"step": step, "status": status, "done": reason}))
    answer(
        event["ResponseURL"],
        {
            "Status": status,
            "Reason": reason[:_LONGEST_REASON],
            "StackId": event["StackId"],
            "RequestId": event["RequestId"],
            "LogicalResourceId": event["LogicalResourceId"],
            "PhysicalResourceId": physical_id,
        },
    )


def put(url: str, content: dict[str, str]) -> None:
    """Sends an answer to the signed address that CloudFormation gave for it."""
    request = urllib.request.Request(  # noqa: S310  # CloudFormation's own address
        url,
        data=json.dumps(content).encode(),
        method="PUT",
        # The URL is signed for a request without a content type; urllib would add one.
        headers={"Content-Type": ""},
    )
    with urllib.request.urlopen(request, timeout=_PUT_TIMEOUT_SECONDS):  # noqa: S310  # as above
        pass


class Endpoint:
    """A live endpoint and the scalable targets that its stack created.

    Args:
        name: EndpointName.
        stack_id: ARN of its stack.
        client: returns boto3's client of a service.
        wait: waits for that many seconds.
    """

    def __init__(self, name: str, stack_id: str, client: Client, wait: Wait) -> None:
        self._name = name
        self._stack_id = stack_id
        self._sagemaker = client("sagemaker")
        self._scaling = client("application-autoscaling")
        self._cloudformation = client("cloudformation")
        self._wait = wait
        self._polls_left = _ENDPOINT_POLLS

    def settle(
        self, variants: list[dict[str, Any]], tags: Mapping[str, str], *, is_first: bool
    ) -> list[str]:
        """Brings the targets into the state that the next step of the deployment needs.

        Args:
            variants: the template's variants: Name, InstanceTypes and, if it is scaled, Scaling.
            tags: tags of every target.
            is_first: whether the stack has had no such function before.

        Returns:
            The finished changes, one sentence part each.

        Raises:
            RefusedError: the endpoint is busy, or the stack's targets are older than this function.
        """
        made = list(self._resources())
        owned = set(self._owned(made))
        if not owned:
            return []
        live = self._live_types()
        if live is None:
            return []
        wanted = {item["Name"]: item for item in variants}
        registered = self._registered({*owned, *wanted})
        stale = [
            name
            for name in sorted(owned & registered)
            if live.get(name) != _types(wanted.get(name)) or "Scaling" not in wanted.get(name, {})
        ]
        done: list[str] = []
        if stale and is_first:
            # Nothing would register them again: if this resource's creation is undone, the function
            # does not learn which targets there were.
            changed = [name for name in stale if live.get(name) != _types(wanted.get(name))]
            if changed:
                raise RefusedError(
                    f"The autoscaling of {', '.join(changed)} was deployed by an older Slipway, "
                    "which cannot be undone together with a change of instances or variants. "
                    "Deploy once without that change, then deploy the change."
                )
            stale = []
        for name in stale:
            self._retrying(
                self._scaling.deregister_scalable_target,
                done_if="ObjectNotFoundException",
                **self._target(name),
            )
            done.append(f"deregistered {name}")
        if stale:
            self._await_gone(stale)
            # A scaling activity may have begun before.
            self._described()
        for name in sorted(owned & set(wanted)):
            scaling = wanted[name].get("Scaling")
            if scaling is not None and live.get(name) == _types(wanted[name]):
                policies = self._owned_policies(made, name)
                is_new = name not in registered - set(stale)
                if is_new:
                    self._register(name, scaling, tags)
                    self._put_schedules(name, scaling.get("Schedules", []))
                    done.append(f"registered {name}")
                if self._put_policy(name, scaling, policies):
                    done.append(f"put the policy {scaling['PolicyName']} of {name}")
        return done

    def remembered(self, longest: int) -> str:
        """Returns the stack's registered targets as text, for `restore`; empty without any."""
        made = list(self._resources())
        owned = set(self._owned(made))
        if not owned:
            return ""
        kept = {}
        for target in self._described_targets(owned):
            name = target["ResourceId"].rpartition("/")[2]
            policies = self._owned_policies(made, name)
            kept[name] = {
                "MinCapacity": target["MinCapacity"],
                "MaxCapacity": target["MaxCapacity"],
                "SuspendedState": target.get("SuspendedState"),
                "Policies": {
                    policy["PolicyName"]: policy["TargetTrackingScalingPolicyConfiguration"]
                    for policy in self._policies(self._target(name))
                    if policy["PolicyName"] in policies and policy["PolicyType"] == _POLICY_TYPE
                },
                "Schedules": self._schedules(name),
            }
        text = json.dumps(kept, separators=(",", ":"))
        packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
        if len(packed) > longest:
            raise RefusedError(
                f"The scaling policies and schedules of {self._name} are too long to be "
                "remembered while the endpoint is updated."
            )
        return packed

    def restore(self, remembered: str) -> list[str]:
        """Registers the targets that a deployment deregistered before it was rolled back.

        Args:
            remembered: the text that `remembered` returned before the deployment.

        Returns:
            The finished changes, one sentence part each.
        """
        (stack,) = self._cloudformation.describe_stacks(StackName=self._stack_id)["Stacks"]
        if not remembered or not stack["StackStatus"].startswith("UPDATE_ROLLBACK"):
            return []
        kept = json.loads(zlib.decompress(base64.b64decode(remembered)))
        live = self._live_types()
        missing = set(kept) & set(self._owned(list(self._resources()))) & set(live or ())
        done = []
        for name in sorted(missing - self._registered(missing)):
            target, was = self._target(name), kept[name]
            limits = {key: was[key] for key in ("MinCapacity", "MaxCapacity")}
            suspended = {"SuspendedState": was["SuspendedState"]} if was["SuspendedState"] else {}
            self._retrying(self._scaling.register_scalable_target, **target, **limits, **suspended)
            for policy, configuration in was["Policies"].items():
                self._retrying(
                    self._scaling.put_scaling_policy,
                    **target,
                    PolicyName=policy,
                    PolicyType=_POLICY_TYPE,
                    TargetTrackingScalingPolicyConfiguration=configuration,
                )
            self._put_schedules(name, was["Schedules"])
            done.append(f"registered {name} as it was")
        return done

    def _owned(self, made: list[tuple[str, str]]) -> Iterator[str]:
        """Yields the variants whose targets the stack has created."""
        for kind, physical_id in made:
            if kind == "AWS::ApplicationAutoScaling::ScalableTarget":
                resource_id, _, rest = physical_id.partition("|")
                prefix = f"endpoint/{self._name}/variant/"
                if resource_id.startswith(prefix) and rest.startswith(_DIMENSION):
                    yield resource_id.removeprefix(prefix)

    def _owned_policies(self, made: list[tuple[str, str]], name: str) -> set[str]:
        """Returns the names of a variant's policies that the stack has created."""
        mark = f":resource/{_NAMESPACE}/{self._target(name)['ResourceId']}:policyName/"
        return {
            physical_id.partition(mark)[2]
            for kind, physical_id in made
            if kind == "AWS::ApplicationAutoScaling::ScalingPolicy" and mark in physical_id
        }

    def _resources(self) -> Iterator[tuple[str, str]]:
        """Yields type and physical id of the stack's resources, even if they no longer exist."""
        token: dict[str, str] = {}
        while True:
            page = self._cloudformation.list_stack_resources(StackName=self._stack_id, **token)
            for item in page["StackResourceSummaries"]:
                status = item["ResourceStatus"]
                if "PhysicalResourceId" not in item or status.startswith("DELETE"):
                    continue
                if status not in ("CREATE_IN_PROGRESS", "CREATE_FAILED"):
                    yield item["ResourceType"], item["PhysicalResourceId"]
            if "NextToken" not in page:
                return
            token = {"NextToken": page["NextToken"]}

    def _live_types(self) -> dict[str, list[str]] | None:
        """Returns the instance types of every live variant; None if there is no endpoint."""
        described = self._described()
        if described is None:
            return None
        config = self._sagemaker.describe_endpoint_config(
            EndpointConfigName=described["EndpointConfigName"]
        )
        return {item["VariantName"]: _declared_types(item) for item in config["ProductionVariants"]}

    def _described(self) -> dict[str, Any] | None:
        """Describes the endpoint once no change is in progress; returns None if there is none."""
        while True:
            try:
                described: dict[str, Any] = self._sagemaker.describe_endpoint(
                    EndpointName=self._name
                )
            except Exception as error:
                # SageMaker has no error code for something that does not exist.
                if "Could not find endpoint" in str(error):
                    return None
                raise
            if described["EndpointStatus"] not in _IN_PROGRESS:
                return described
            if self._polls_left == 0:
                raise RefusedError(
                    f"The endpoint {self._name} is still {described['EndpointStatus']}. Wait until "
                    "it is InService, then deploy again (or continue the rollback of the stack)."
                )
            self._polls_left -= 1
            self._wait(_ENDPOINT_POLL_SECONDS)

    def _registered(self, names: set[str]) -> set[str]:
        """Returns the registered ones among these variants."""
        found = {target["ResourceId"] for target in self._described_targets(names)}
        return {name for name in names if self._target(name)["ResourceId"] in found}

    def _described_targets(self, names: set[str]) -> list[dict[str, Any]]:
        if not names:
            return []  # an empty list would mean every target of the account
        answer = self._scaling.describe_scalable_targets(
            ServiceNamespace=_NAMESPACE,
            ResourceIds=[self._target(name)["ResourceId"] for name in sorted(names)],
            ScalableDimension=_DIMENSION,
        )
        targets: list[dict[str, Any]] = answer["ScalableTargets"]
        return targets

    def _await_gone(self, names: list[str]) -> None:
        """Waits until no call returns the deregistered targets any more."""
        for _ in range(_TARGET_POLLS):
            if not self._registered(set(names)):
                return
            self._wait(_TARGET_POLL_SECONDS)
        raise RefusedError(f"The scalable targets of {', '.join(names)} do not go. Deploy again.")

    def _register(self, name: str, scaling: Mapping[str, Any], tags: Mapping[str, str]) -> None:
        """Registers a variant."""
        tagging: dict[str, Any] = {"Tags": dict(tags)} if tags else {}
        self._retrying(
            self._scaling.register_scalable_target,
            **self._target(name),
            MinCapacity=int(scaling["MinCapacity"]),
            MaxCapacity=int(scaling["MaxCapacity"]),
            **tagging,
        )

    def _put_policy(self, name: str, scaling: Mapping[str, Any], owned: set[str]) -> bool:
        """Puts a variant's policy if the stack created it and it is gone; returns if it did."""
        target, policy = self._target(name), scaling["PolicyName"]
        if policy not in owned - {item["PolicyName"] for item in self._policies(target)}:
            return False
        self._retrying(
            self._scaling.put_scaling_policy,
            **target,
            PolicyName=policy,
            PolicyType=_POLICY_TYPE,
            TargetTrackingScalingPolicyConfiguration={
                "TargetValue": float(scaling["TargetValue"]),
                "PredefinedMetricSpecification": {
                    "PredefinedMetricType": scaling["PredefinedMetricType"]
                },
                "ScaleInCooldown": int(scaling["ScaleInCooldown"]),
                "ScaleOutCooldown": int(scaling["ScaleOutCooldown"]),
            },
        )
        return True

    def _put_schedules(self, name: str, schedules: list[dict[str, Any]]) -> None:
        """Puts the scheduled actions of a variant."""
        for schedule in schedules:
            bounds = schedule["ScalableTargetAction"]
            self._retrying(
                self._scaling.put_scheduled_action,
                **self._target(name),
                **{key: schedule[key] for key in _SCHEDULE if key in schedule},
                ScalableTargetAction={key: int(value) for key, value in bounds.items()},
            )

    def _schedules(self, name: str) -> list[dict[str, Any]]:
        """Returns a variant's scheduled actions, in the form of `_put_schedules`."""
        target = self._target(name)
        actions: list[dict[str, Any]] = []
        token: dict[str, str] = {}
        while True:
            page = self._scaling.describe_scheduled_actions(**target, **token)
            actions += page["ScheduledActions"]
            if "NextToken" not in page:
                return [
                    {key: item[key] for key in (*_SCHEDULE, "ScalableTargetAction") if key in item}
                    for item in actions
                ]
            token = {"NextToken": page["NextToken"]}

    def _policies(self, target: Mapping[str, str]) -> list[dict[str, Any]]:
        found = self._scaling.describe_scaling_policies(**target)["ScalingPolicies"]
        return [item for item in found if item["ResourceId"] == target["ResourceId"]]

    def _target(self, name: str) -> dict[str, str]:
        return {
            "ServiceNamespace": _NAMESPACE,
            "ResourceId": f"endpoint/{self._name}/variant/{name}",
            "ScalableDimension": _DIMENSION,
        }

    def _retrying(
        self, operation: Callable[..., Any], *, done_if: str = "", **request: Any
    ) -> None:
        """Calls an operation again while another update of the same target is in progress.

        Args:
            operation: an operation of the scaling client.
            done_if: the error code that means that nothing is left to do.
            **request: the operation's members.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                operation(**request)
            except Exception as error:
                code = getattr(error, "response", {}).get("Error", {}).get("Code")
                if code == done_if:
                    return
                if code != "ConcurrentUpdateException" or attempt == _ATTEMPTS:
                    raise
                self._wait(_ATTEMPT_PAUSE_SECONDS)
            else:
                return


def _types(variant: Mapping[str, Any] | None) -> list[str] | None:
    return None if variant is None else list(variant["InstanceTypes"])


def _declared_types(variant: Mapping[str, Any]) -> list[str]:
    """Returns the instance types of a production variant, the preferred type first."""
    if "InstanceType" in variant:
        return [variant["InstanceType"]]
    pools = sorted(variant["InstancePools"], key=lambda pool: int(pool["Priority"]))
    return [pool["InstanceType"] for pool in pools]
