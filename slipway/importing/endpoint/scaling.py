"""Scalable targets, policies and scheduled actions, as the section `autoscaling` has them."""

from typing import Any

from slipway.deployed.answers import Answer, shown
from slipway.deployed.described import Described, Raw
from slipway.deployed.scaling import (
    PAUSES,
    STEP_SCALING,
    TRACKING,
    take_target,
    target_field,
)
from slipway.importing.endpoint.components import scales_to_zero
from slipway.importing.endpoint.findings import NO_FIELD, Findings
from slipway.importing.endpoint.steps import schedules_of, steps_of, wakes

# Application Auto Scaling's own for SageMaker, where a policy says none:
# https://docs.aws.amazon.com/autoscaling/application/APIReference/API_TargetTrackingScalingPolicyConfiguration.html
_DEFAULT_COOLDOWN_SECONDS = 300
_BOUNDS = ("min_instance_count", "max_instance_count")
_ABOUT = (
    "PolicyARN", "PolicyName", "ServiceNamespace", "ResourceId", "ScalableDimension", "PolicyType",
    "Alarms", "CreationTime", "ScalableTargetARN", "RoleARN", "ScheduledActionARN",
    "PredictedCapacity",
)  # fmt: skip
_NO_TARGET = "a config that scales names a load of each instance, and no policy here does."


def autoscaling_section(
    described: Described, gpu_count: int, found: Findings
) -> dict[str, Any] | None:
    """Returns the section; None for a fixed number of instances."""
    variants = [each["VariantName"] for each in described.config["ProductionVariants"]]
    targets = {name: target for name in variants if (target := described.target_of(name))}
    sections = {
        name: _section(described, target, gpu_count, found) for name, target in targets.items()
    }
    said = [*targets.values()]
    if scales_to_zero(described):
        said.append(described.component_target or {})  # `endpoint.scale_to_zero` has it
    for target in described.targets:
        if target not in said:
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
    target = Answer(raw, _ABOUT)
    low, high = target.take("MinCapacity"), target.take("MaxCapacity")
    resource = raw["ResourceId"]
    load: dict[str, Any] = {}
    policies = described.policies_of(raw)
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
    for name in PAUSES:
        if section.setdefault(name, None) is None:
            section[name] = _DEFAULT_COOLDOWN_SECONDS
            found.guess(("autoscaling", name), "the policy says none. This is AWS's default.")
    if schedules:
        section["schedules"] = schedules
    return section


def _tracked(
    raw: Raw, gpu_count: int, found: Findings, before: dict[str, Any]
) -> dict[str, Any] | None:
    """Returns the fields that a scaling policy tells; None for a policy without a field."""
    name, policy, field = raw["PolicyName"], Answer(raw, _ABOUT), target_field(raw)
    if field is None or before:
        reason = "a config scales by one target." if before else NO_FIELD
        metric = policy.take(TRACKING, "PredefinedMetricSpecification", "PredefinedMetricType")
        found.leave_out(f"scaling policy {name}", metric or shown(dict(policy.rest())), reason)
        return None
    load = take_target(policy, field, gpu_count)
    found.leave_out_rest(policy, f"scaling policy {name}: ")
    return load


def _policy(raw: Raw) -> tuple[str, str]:
    return f"scaling policy {raw['PolicyName']}", shown(dict(Answer(raw, _ABOUT).rest()))
