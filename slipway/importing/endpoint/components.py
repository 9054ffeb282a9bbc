"""The component of an endpoint that scales to zero, as `endpoint.scale_to_zero` has it."""

from collections.abc import Iterator
from typing import Any

from slipway.deployed.answers import Answer
from slipway.deployed.described import Described
from slipway.deployed.fields import COMPONENT, COMPONENT_TIMEOUTS, whole
from slipway.deployed.scaling import STEP_SCALING, take_target, target_field
from slipway.importing.endpoint.findings import Findings
from slipway.importing.endpoint.schedules import schedules_of
from slipway.importing.endpoint.steps import wakes
from slipway.planning.component import SCALE_TO_ZERO, WAKE_METRIC

_SCALING = "ManagedInstanceScaling"
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

    It can say one component of one model, whose copies and instances may go to zero.
    """
    variants, target = described.config["ProductionVariants"], described.component_target
    if described.component is None or target is None or len(variants) != 1:
        return False
    specification = described.component.get("Specification") or {}
    instances = variants[0].get(_SCALING) or {}
    return (
        bool(specification.get("ModelName"))
        and 0 in (target["MinCapacity"], *_scheduled_minima(described))
        and (instances.get("Status"), instances.get("MinInstanceCount")) == ("ENABLED", 0)
        and any(target_field(policy) for policy in described.policies_of(target))
    )


def _scheduled_minima(described: Described) -> Iterator[int | None]:
    """Yields the lower bounds that scheduled actions set: one may have set the present one."""
    for action in described.actions_of(described.component_target or {}):
        yield action.get("ScalableTargetAction", {}).get("MinCapacity")


def component_fields(described: Described, variant: Answer, found: Findings) -> dict[str, Any]:
    """Returns the fields of `endpoint` that the component and its scaling tell.

    The scaling of the instances is taken out of the variant.
    """
    raw, target = described.component or {}, described.component_target or {}
    name = str(raw.get("InferenceComponentName"))
    if name != described.name:
        found.change("inference component", name, "it has the name of the endpoint now.")
    component = Answer(raw, _ABOUT)
    section: dict[str, Any] = {"max_copies": target["MaxCapacity"], **_targets(described, found)}
    section |= {name: whole(value) for name, value in component.fields(COMPONENT).items()}
    fields: dict[str, Any] = {
        "mode": SCALE_TO_ZERO,
        "scale_to_zero": section,
        **component.fields(COMPONENT_TIMEOUTS),
    }
    for path in ("ModelName",), ("Container", "DeployedImage"):
        component.take("Specification", *path)
    found.leave_out_rest(component, "inference component ")
    for each in ("Status", "MinInstanceCount"):
        variant.take(_SCALING, each)
    most = variant.take(_SCALING, "MaxInstanceCount")
    if described.environment is None and most is not None:
        reason = "Slipway computes it from `max_copies` and the copies that fit on an instance."
        found.change(f"{_SCALING}.MaxInstanceCount", most, reason)
    schedules = schedules_of(described, target, ("min_copies", "max_copies"), found)
    if schedules:
        section["schedules"] = schedules
    if (0, target["MaxCapacity"]) in [(s["min_copies"], s["max_copies"]) for s in schedules]:
        place = ("endpoint", "scale_to_zero", "max_copies")
        found.guess(place, "a scheduled action may have set it last.")
    return fields


def _targets(described: Described, found: Findings) -> dict[str, Any]:
    """Returns target and pauses of the policies that scale the copies."""
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
    if not is_woken:
        reason = "Slipway makes an alarm and a policy that add the first copy."
        found.change("policy that wakes the endpoint", "none", reason)
    return section
