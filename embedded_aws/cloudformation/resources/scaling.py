"""Scalable targets and their policies (application autoscaling)."""

from typing import Any

from slipway.embedded_aws.cloudformation.resources.base import (
    Physical,
    Properties,
    ResourceContext,
    ResourceFailedError,
    ResourceHandler,
    ignoring,
    input_shape,
    selected,
    tag_map,
)

_SERVICE = "application-autoscaling"
_TARGET = ("ServiceNamespace", "ResourceId", "ScalableDimension")
_REGISTERED = tuple(input_shape(_SERVICE, "RegisterScalableTarget").members)
_POLICY = (
    "PolicyName",
    "PolicyType",
    "StepScalingPolicyConfiguration",
    "TargetTrackingScalingPolicyConfiguration",
)


class ScalableTargetHandler(ResourceHandler):
    type_name = "AWS::ApplicationAutoScaling::ScalableTarget"
    service = _SERVICE
    properties = frozenset({*_REGISTERED, "ScheduledActions"})
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
        self._register(context, {}, properties)
        return Physical(physical_id, {"Id": physical_id})

    def update(self, context: ResourceContext, old: Properties, new: Properties) -> None:
        """Registers the target again, which changes its limits; a deleted one stays deleted."""
        if not _is_registered(context, context.physical_id):
            raise _not_found(self.type_name, context.physical_id)
        self._register(context, old, new)

    def delete(self, context: ResourceContext, properties: Properties) -> None:
        with ignoring("ObjectNotFoundException"):
            context.call("DeregisterScalableTarget", _target(context.physical_id))

    def _register(self, context: ResourceContext, old: Properties, new: Properties) -> None:
        """Registers the target, and puts and deletes its scheduled actions."""
        target = selected(new, *_TARGET)
        # This API takes tags as a map, CloudFormation as a list.
        request = {**selected(new, *_REGISTERED), "Tags": tag_map(new) or None}
        context.call("RegisterScalableTarget", request)
        actions = {item["ScheduledActionName"]: item for item in new.get("ScheduledActions", [])}
        for action in actions.values():
            context.call("PutScheduledAction", {**target, **action})
        for item in old.get("ScheduledActions", []):
            name = item["ScheduledActionName"]
            if name not in actions:
                with ignoring("ObjectNotFoundException"):
                    context.call("DeleteScheduledAction", {**target, "ScheduledActionName": name})


class ScalingPolicyHandler(ResourceHandler):
    type_name = "AWS::ApplicationAutoScaling::ScalingPolicy"
    service = _SERVICE
    properties = frozenset({*_POLICY, "ScalingTargetId"})
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

    def update(self, context: ResourceContext, old: Properties, new: Properties) -> None:
        """Puts the policy again; a deleted policy stays deleted.

        CloudFormation's schema identifies a policy by its ARN. One that was deleted and put again
        has another ARN, and is taken for another policy. No source says that AWS looks closer.
        """
        if self._arn(context, new) != context.physical_id:
            dimension = _policy_target(new)["ScalableDimension"]
            raise _not_found(self.type_name, f"{context.physical_id}|{dimension}")
        self._put(context, new)

    def delete(self, context: ResourceContext, properties: Properties) -> None:
        request = {"PolicyName": properties["PolicyName"], **_policy_target(properties)}
        with ignoring("ObjectNotFoundException"):
            context.call("DeleteScalingPolicy", request)

    def _arn(self, context: ResourceContext, properties: Properties) -> str | None:
        """Returns the ARN of the policy with this name; None if there is none."""
        name, target = properties["PolicyName"], _policy_target(properties)
        answer = context.api.describe_scaling_policies(PolicyNames=[name], **target)
        found = answer["ScalingPolicies"]
        return next((str(item["PolicyARN"]) for item in found if item["PolicyName"] == name), None)

    def _put(self, context: ResourceContext, properties: Properties) -> str:
        request = {**selected(properties, *_POLICY), **_policy_target(properties)}
        return str(context.call("PutScalingPolicy", request)["PolicyARN"])


def _is_registered(context: ResourceContext, physical_id: str) -> bool:
    target = _target(physical_id)
    resource_id = target.pop("ResourceId")
    found = context.api.describe_scalable_targets(ResourceIds=[resource_id], **target)
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
    names = ("ResourceId", "ScalableDimension", "ServiceNamespace")
    return dict(zip(names, physical_id.split("|"), strict=True))
