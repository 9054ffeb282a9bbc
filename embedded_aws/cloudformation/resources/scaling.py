"""Scalable targets and their policies (application autoscaling)."""

from typing import Any

from slipway.embedded_aws.cloudformation.resources.api_calls import (
    call,
    ignoring,
    selected,
    tag_map,
)
from slipway.embedded_aws.cloudformation.resources.base import (
    Attributes,
    Physical,
    Properties,
    ResourceContext,
    ResourceFailedError,
    ResourceHandler,
)

_SERVICE = "application-autoscaling"
_TARGET = ("ServiceNamespace", "ResourceId", "ScalableDimension")


class ScalableTargetHandler(ResourceHandler):
    """AWS::ApplicationAutoScaling::ScalableTarget."""

    type_name = "AWS::ApplicationAutoScaling::ScalableTarget"
    properties = frozenset(
        {
            *_TARGET,
            "MaxCapacity",
            "MinCapacity",
            "RoleARN",
            "ScheduledActions",
            "SuspendedState",
            "Tags",
        }
    )
    attributes = frozenset({"Id"})

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls RegisterScalableTarget; a target that exists already is refused."""
        physical_id = "|".join(
            properties[name] for name in ("ResourceId", "ScalableDimension", "ServiceNamespace")
        )
        # Also if the same template has the target under another logical id, because the old
        # resource is deleted only after the new one was created.
        if _is_registered(context, physical_id):
            raise ResourceFailedError(f"{physical_id} already exists")
        self._register(context, properties)
        self._schedule(context, {}, properties)
        return Physical(physical_id, {"Id": physical_id})

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Registers the target again, which changes its limits, and puts its scheduled actions.

        A deleted target stays deleted.
        """
        if not _is_registered(context, physical_id):
            raise _not_found(self.type_name, physical_id)
        self._register(context, new)
        self._schedule(context, old, new)
        return {"Id": physical_id}

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Calls DeregisterScalableTarget."""
        with ignoring("ObjectNotFoundException"):
            call(context.client(_SERVICE), "DeregisterScalableTarget", _target(physical_id))

    def _register(self, context: ResourceContext, properties: Properties) -> None:
        request = selected(
            properties, *_TARGET, "MinCapacity", "MaxCapacity", "RoleARN", "SuspendedState"
        )
        # This API takes tags as a map, CloudFormation as a list.
        request["Tags"] = tag_map(properties) or None
        call(context.client(_SERVICE), "RegisterScalableTarget", request)

    def _schedule(self, context: ResourceContext, old: Properties, new: Properties) -> None:
        """Puts the scheduled actions of a template, and deletes those that it had before."""
        client, target = context.client(_SERVICE), selected(new, *_TARGET)
        actions = {item["ScheduledActionName"]: item for item in new.get("ScheduledActions", [])}
        for action in actions.values():
            call(client, "PutScheduledAction", {**target, **action})
        for item in old.get("ScheduledActions", []):
            name = item["ScheduledActionName"]
            if name not in actions:
                with ignoring("ObjectNotFoundException"):
                    call(client, "DeleteScheduledAction", {**target, "ScheduledActionName": name})


class ScalingPolicyHandler(ResourceHandler):
    """AWS::ApplicationAutoScaling::ScalingPolicy."""

    type_name = "AWS::ApplicationAutoScaling::ScalingPolicy"
    properties = frozenset(
        {
            "PolicyName",
            "PolicyType",
            "ScalingTargetId",
            "StepScalingPolicyConfiguration",
            "TargetTrackingScalingPolicyConfiguration",
        }
    )
    name_property = "PolicyName"
    attributes = frozenset({"Arn"})

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls PutScalingPolicy; a name that is taken is refused.

        Source: https://github.com/pulumi/pulumi-aws-native/issues/1637 (read 2026-11-28)
        """
        if self._arn(context, properties) is not None:
            raise ResourceFailedError(
                f"Scaling Policy Already Exists: {properties['PolicyName']} "
                "(HandlerErrorCode: AlreadyExists)"
            )
        arn = self._put(context, properties)
        return Physical(arn, {"Arn": arn})

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Puts the policy again; a deleted policy stays deleted.

        CloudFormation's schema identifies a policy by its ARN. One that was deleted and put again
        has another ARN, and is taken for another policy. No source says that AWS looks closer.
        """
        if self._arn(context, new) != physical_id:
            dimension = _policy_target(new)["ScalableDimension"]
            raise _not_found(self.type_name, f"{physical_id}|{dimension}")
        return {"Arn": self._put(context, new)}

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Calls DeleteScalingPolicy."""
        with ignoring("ObjectNotFoundException"):
            call(
                context.client(_SERVICE),
                "DeleteScalingPolicy",
                {"PolicyName": properties["PolicyName"], **_policy_target(properties)},
            )

    def _arn(self, context: ResourceContext, properties: Properties) -> str | None:
        """Returns the ARN of the policy with this name; None if there is none."""
        client, target = context.client(_SERVICE), _policy_target(properties)
        name = properties["PolicyName"]
        found = client.describe_scaling_policies(PolicyNames=[name], **target)["ScalingPolicies"]
        return next((str(item["PolicyARN"]) for item in found if item["PolicyName"] == name), None)

    def _put(self, context: ResourceContext, properties: Properties) -> str:
        client = context.client(_SERVICE)
        target = _policy_target(properties)
        names = (
            "PolicyName",
            "PolicyType",
            "StepScalingPolicyConfiguration",
            "TargetTrackingScalingPolicyConfiguration",
        )
        answer = call(client, "PutScalingPolicy", {**selected(properties, *names), **target})
        return str(answer["PolicyARN"])


def _is_registered(context: ResourceContext, physical_id: str) -> bool:
    target = _target(physical_id)
    found = context.client(_SERVICE).describe_scalable_targets(
        ServiceNamespace=target["ServiceNamespace"],
        ResourceIds=[target["ResourceId"]],
        ScalableDimension=target["ScalableDimension"],
    )
    return bool(found["ScalableTargets"])


def _not_found(type_name: str, identifier: str) -> ResourceFailedError:
    """Returns CloudFormation's error for a handler whose update answers NotFound."""
    return ResourceFailedError(
        f"Resource of type '{type_name}' with identifier '{identifier}' was not found. "
        "(HandlerErrorCode: NotFound)"
    )


def _policy_target(properties: Properties) -> dict[str, Any]:
    if "ScalingTargetId" not in properties:
        raise ResourceFailedError("Properties validation failed: ScalingTargetId is needed")
    return _target(properties["ScalingTargetId"])


def _target(physical_id: str) -> dict[str, Any]:
    resource_id, dimension, namespace = physical_id.split("|")
    return {
        "ServiceNamespace": namespace,
        "ResourceId": resource_id,
        "ScalableDimension": dimension,
    }
