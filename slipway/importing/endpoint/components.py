"""The component of an endpoint that scales to zero, as `endpoint.scale_to_zero` has it."""

from typing import Any

from slipway.deployed.answers import Answer
from slipway.deployed.described import Described
from slipway.deployed.fields import (
    COMPONENT,
    COMPONENT_TIMEOUTS,
    INSTANCES_OF_COPIES,
    whole,
)
from slipway.deployed.scaling import STEP_SCALING, take_target, target_field
from slipway.importing.endpoint.findings import Findings
from slipway.importing.endpoint.steps import schedules_of, wakes
from slipway.planning.component import SCALE_TO_ZERO, WAKE_METRIC

_SCALING = "ManagedInstanceScaling"
_BOUNDS = ("min_copies", "max_copies")
# Names, times and states. Its copies follow the load.
_ABOUT = (
    "InferenceComponentName", "InferenceComponentArn", "EndpointName", "EndpointArn", "VariantName",
    "CreationTime", "LastModifiedTime", "InferenceComponentStatus", "RuntimeConfig",
    "LastDeploymentConfig", "ResponseMetadata",
)  # fmt: skip
_POLICY_ABOUT = ("PolicyARN", "PolicyName", "ServiceNamespace", "ResourceId", "ScalableDimension",
                 "PolicyType", "Alarms", "CreationTime")  # fmt: skip


def scales_to_zero(described: Described) -> bool:
    """Returns whether a config can say the inference components of an endpoint.

    It can say one component of one model, whose copies scale and whose instances follow them.
    """
    variants, target = described.config["ProductionVariants"], described.component_target
    if described.component is None or target is None or len(variants) != 1:
        return False
    specification = described.component.get("Specification") or {}
    instances = variants[0].get(_SCALING) or {}
    return (
        bool(specification.get("ModelName"))
        and instances.get("Status") == "ENABLED"
        and instances.get("MinInstanceCount") is not None
        and any(target_field(policy) for policy in described.policies_of(target))
    )


def component_fields(described: Described, variant: Answer, found: Findings) -> dict[str, Any]:
    """Returns the fields of `endpoint` that the component tells, and its scaling in the variant."""
    raw, target = described.component or {}, described.component_target or {}
    name = str(raw.get("InferenceComponentName"))
    if name != described.name:
        found.change("inference component", name, "it has the name of the endpoint now.")
    component = Answer(raw, _ABOUT)
    bounds = (target["MinCapacity"], target["MaxCapacity"])
    section: dict[str, Any] = {"max_copies": target["MaxCapacity"], **_targets(described, found)}
    if target["MinCapacity"]:
        section["min_copies"] = target["MinCapacity"]
    section |= {name: whole(value) for name, value in component.fields(COMPONENT).items()}
    if (strategy := section.get("placement_strategy")) is not None:
        section["placement_strategy"] = strategy.lower()
        # The only mode that there is.
        component.take(
            "Specification", "SchedulingConfig", "AvailabilityZoneBalance", "EnforcementMode"
        )
    fields: dict[str, Any] = {
        "mode": SCALE_TO_ZERO,
        "scale_to_zero": section,
        **component.fields(COMPONENT_TIMEOUTS),
    }
    for path in ("ModelName",), ("Container", "DeployedImage"):
        component.take("Specification", *path)
    found.leave_out_rest(component, "inference component ")
    variant.take(_SCALING, "Status")
    strategy = variant.take(_SCALING, "ScaleInPolicy", "Strategy")
    instances = variant.fields(INSTANCES_OF_COPIES)
    if floor := instances.pop("min_instance_count"):
        section["min_instance_count"] = floor
    if strategy == "CONSOLIDATION":
        section["consolidation"] = {
            name.partition(".")[2]: value for name, value in instances.items()
        }
    else:
        # Instances without copies are released, which is the default: nothing else has an effect.
        for name, value in instances.items():
            variant.put(value, *INSTANCES_OF_COPIES[name])
    most = variant.take(_SCALING, "MaxInstanceCount")
    if described.environment is None and most is not None:
        reason = "Slipway computes it from `max_copies` and the copies that fit on an instance."
        found.change(f"{_SCALING}.MaxInstanceCount", most, reason)
    schedules = schedules_of(described, target, _BOUNDS, found)
    if schedules:
        section["schedules"] = schedules
    if bounds in [(s["min_copies"], s["max_copies"]) for s in schedules]:
        place = ("endpoint", "scale_to_zero", "max_copies")
        found.guess(place, "a scheduled action may have set it last.")
    return fields


def _targets(described: Described, found: Findings) -> dict[str, Any]:
    target = described.component_target or {}
    section: dict[str, Any] = {}
    is_woken = False
    for raw in described.policies_of(target):
        if raw["PolicyType"] == STEP_SCALING and wakes(raw, described.alarms, 0, WAKE_METRIC):
            is_woken = True
            continue
        policy, field = Answer(raw, _POLICY_ABOUT), target_field(raw)
        if field is not None and not section:
            section = take_target(policy, field)
        found.leave_out_rest(policy, f"scaling policy {raw['PolicyName']}: ")
    # A copy that always runs needs no request to wake it.
    if not is_woken and not target["MinCapacity"]:
        reason = "Slipway makes an alarm and a policy that add the first copy."
        found.change("policy that wakes the endpoint", "none", reason)
    return section
