"""Scalable targets, policies and scheduled actions, as the section `autoscaling` has them."""

from collections.abc import Mapping
from typing import Any

from slipway.importing.endpoint.answers import Answer, shown
from slipway.importing.endpoint.components import scales_to_zero
from slipway.importing.endpoint.described import Described, Raw
from slipway.importing.endpoint.findings import NO_FIELD, Findings
from slipway.importing.endpoint.schedules import schedules_of
from slipway.importing.endpoint.steps import STEP_SCALING, steps_of, wakes, whole
from slipway.planning.asynchronous import BACKLOG_PER_INSTANCE

# A policy's predefined metric to the field with its target.
_TARGETS: Mapping[str, str] = {
    "SageMakerVariantInvocationsPerInstance": "target_invocations_per_instance_per_minute",
    "SageMakerVariantConcurrentRequestsPerModelHighResolution": (
        "target_concurrent_requests_per_instance"
    ),
}
_GPUS = "target_gpu_utilization_percent"
# The metric of a policy without a predefined one to the field with its target.
_CUSTOM_TARGETS: Mapping[str, str] = {
    BACKLOG_PER_INSTANCE: "target_backlog_per_instance",
    "GPUUtilization": _GPUS,
}
# Application Auto Scaling's own for SageMaker, where a policy says none:
# https://docs.aws.amazon.com/autoscaling/application/APIReference/API_TargetTrackingScalingPolicyConfiguration.html
_DEFAULT_COOLDOWN_SECONDS = 300
_COOLDOWNS = ("scale_in_cooldown_seconds", "scale_out_cooldown_seconds")
_BOUNDS = ("min_instance_count", "max_instance_count")
_COUNT = "sagemaker:variant:DesiredInstanceCount"
_ABOUT = (
    "PolicyARN", "PolicyName", "ServiceNamespace", "ResourceId", "ScalableDimension", "PolicyType",
    "Alarms", "CreationTime", "ScalableTargetARN", "RoleARN", "ScheduledActionARN",
    "PredictedCapacity",
)  # fmt: skip
_NO_TARGET = "a config that scales names a load of each instance, and no policy here does."


def autoscaling_section(
    described: Described, gpu_count: int, found: Findings
) -> dict[str, Any] | None:
    """Returns the section; None for a fixed number of instances.

    Args:
        described: the endpoint.
        gpu_count: GPUs of an instance, over which their metric adds up.
        found: gets what the section cannot say.
    """
    variants = [each["VariantName"] for each in described.config["ProductionVariants"]]
    named = {described.resource_id(name): name for name in variants}
    targets = [each for each in described.targets if each["ScalableDimension"] == _COUNT]
    sections = {
        named[target["ResourceId"]]: _section(described, target, gpu_count, found)
        for target in targets
        if target["ResourceId"] in named
    }
    for target in described.targets:
        if scales_to_zero(described) and target == described.component_target:
            continue  # `endpoint.scale_to_zero` has it
        if target not in targets or target["ResourceId"] not in named:
            found.leave_out(f"scalable target {target['ResourceId']}", target["ScalableDimension"])
    kept = next(((name, each) for name, each in sections.items() if each is not None), None)
    if kept is None:
        return None
    first, section = kept
    for name, each in sections.items():
        if each is not None and each != section:
            found.change(f"autoscaling of {name}", each, f"as {first} now. All variants share it.")
    for name in variants:
        if name not in sections:
            found.change(
                f"autoscaling of {name}", "none", f"as {first} now. All variants share it."
            )
    return section


def _section(
    described: Described, raw: Raw, gpu_count: int, found: Findings
) -> dict[str, Any] | None:
    """Returns the section of one variant."""
    target = Answer(raw, _ABOUT)
    low, high = target.take("MinCapacity"), target.take("MaxCapacity")
    resource = raw["ResourceId"]
    load: dict[str, Any] = {}
    policies = _of(described.policies, raw)
    for policy in policies:
        if policy["PolicyType"] != STEP_SCALING:
            load = _tracked(policy, gpu_count, found, load) or load
    for policy in policies:
        if policy["PolicyType"] == STEP_SCALING and not wakes(policy, described.alarms, low):
            steps = steps_of(policy, described.alarms, load, gpu_count)
            if steps is None:
                found.leave_out(*_policy(policy))
            else:
                load["steps"] = steps
    schedules = schedules_of(described, raw, _BOUNDS, found)
    found.leave_out_rest(target, f"{resource}: ")
    if not load:
        bounds = f"{low} to {high} instances"
        found.leave_out(f"scalable target {resource}", bounds, _NO_TARGET)
        for each in schedules:
            found.leave_out(f"scheduled action {each['name']}", each["at"], _NO_TARGET)
        return None
    if any(
        (each["min_instance_count"], each["max_instance_count"]) == (low, high)
        for each in schedules
    ):
        reason = "a scheduled action may have set it last."
        found.guess(("autoscaling", "min_instance_count"), reason)
        found.guess(("autoscaling", "max_instance_count"), reason)
    section: dict[str, Any] = {"min_instance_count": low, "max_instance_count": high, **load}
    for name in _COOLDOWNS:
        if section.setdefault(name, None) is None:
            section[name] = _DEFAULT_COOLDOWN_SECONDS
            found.guess(("autoscaling", name), "the policy says none. This is AWS's default.")
    if schedules:
        section["schedules"] = schedules
    return section


def _of(items: Any, target: Raw) -> list[Raw]:
    return [
        each
        for each in items
        if (each["ResourceId"], each["ScalableDimension"])
        == (target["ResourceId"], target["ScalableDimension"])
    ]


def _tracked(
    raw: Raw, gpu_count: int, found: Findings, before: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Returns the fields that a scaling policy tells; None for a policy without a field."""
    name, policy = raw["PolicyName"], Answer(raw, _ABOUT)
    tracking = "TargetTrackingScalingPolicyConfiguration"
    metric = policy.take(tracking, "PredefinedMetricSpecification", "PredefinedMetricType")
    field = _TARGETS.get(str(metric))
    custom = policy.take(tracking, "CustomizedMetricSpecification")
    if metric is None and custom is not None and custom.get("MetricName") in _CUSTOM_TARGETS:
        metric, field = custom["MetricName"], _CUSTOM_TARGETS[custom["MetricName"]]
    elif custom is not None:
        policy.put(custom, tracking, "CustomizedMetricSpecification")
    if field is None or before:
        reason = "a config scales by one target." if before else NO_FIELD
        what = metric or shown(dict(policy.rest()))
        found.leave_out(f"scaling policy {name}", what, reason)
        return None
    target = policy.take(tracking, "TargetValue") / (gpu_count if field == _GPUS else 1)
    load: dict[str, Any] = {field: whole(target)}
    for key, source in zip(_COOLDOWNS, ("ScaleInCooldown", "ScaleOutCooldown"), strict=True):
        load[key] = policy.take(tracking, source)
    found.leave_out_rest(policy, f"scaling policy {name}: ")
    return load


def _policy(raw: Raw) -> tuple[str, str]:
    """Returns name and content of a policy that has no field."""
    return f"scaling policy {raw['PolicyName']}", shown(dict(Answer(raw, _ABOUT).rest()))
