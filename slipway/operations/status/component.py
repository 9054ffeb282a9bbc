"""The inference component of an endpoint that scales to zero, in the files and in the account."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from slipway.access import Access
from slipway.deployed.answers import Answer
from slipway.deployed.calls import component_names, scaling_items
from slipway.deployed.described import Raw
from slipway.deployed.fields import COMPONENT
from slipway.planning.component import ComponentPlan
from slipway.planning.plan import DeploymentPlan


@dataclass(frozen=True)
class Component:
    """A live inference component; the bounds are None if its copies are not scaled.

    `changed` is when the status last changed, in UTC. `failure_reason` is of the last change that
    failed. `current_copies` answer.
    """

    name: str
    status: str
    changed: datetime
    failure_reason: str | None
    current_copies: int
    desired_copies: int
    min_copies: int | None
    max_copies: int | None

    @property
    def is_asleep(self) -> bool:
        return self.current_copies == 0 and self.status == "InService"


def other_components(sagemaker: Any, described: Raw) -> tuple[str, ...]:
    names = component_names(sagemaker, described["EndpointName"])
    return tuple(sorted(name for name in names if name != described["InferenceComponentName"]))


def read_component(access: Access, described: Raw) -> Component:
    copies = described.get("RuntimeConfig", {})
    name = described["InferenceComponentName"]
    target = target_of(access, name)
    return Component(
        name=name,
        status=described["InferenceComponentStatus"],
        changed=described["LastModifiedTime"],
        failure_reason=described.get("FailureReason"),
        current_copies=copies.get("CurrentCopyCount", 0),
        desired_copies=copies.get("DesiredCopyCount", 0),
        min_copies=target["MinCapacity"] if target else None,
        max_copies=target["MaxCapacity"] if target else None,
    )


def target_of(access: Access, name: str) -> Raw | None:
    """Returns the scalable target of a component's copies; None if they are not scaled."""
    targets = scaling_items(
        access.client("application-autoscaling"),
        "describe_scalable_targets",
        ResourceIds=[f"inference-component/{name}"],
    )
    return targets[0] if targets else None


def planned_copies(plan: DeploymentPlan, component: ComponentPlan) -> dict[str, Any]:
    """Returns the settings in the files, by the fields of `endpoint.scale_to_zero`.

    `endpoint_of` is left out: it is compared with the names of endpoints.
    """
    settings = component.settings
    found = {
        **dict(settings),
        "accelerators_per_copy": component.accelerators_per_copy,
        "vcpus_per_copy": component.vcpus_per_copy,
        "max_zone_imbalance": settings.max_zone_imbalance or None,  # 0 is SageMaker's default
        **{f"consolidation.{name}": each for name, each in settings.consolidation or ()},
    }
    del found["endpoint_of"], found["consolidation"]
    if plan.host is not None:
        del found["min_instance_count"]  # the endpoint of the host has it
    return found


def copies_of(component: Answer, plan: DeploymentPlan) -> dict[str, Any]:
    """Takes the settings out of DescribeInferenceComponent's answer, by the same fields."""
    found = component.fields(COMPONENT)
    if "placement_strategy" in found:
        found["placement_strategy"] = found["placement_strategy"].lower()
    if not found.get("max_zone_imbalance"):
        found.pop("max_zone_imbalance", None)
    settings = plan.config.endpoint.copies
    if settings is not None and settings.cache_model is None:
        found.pop("cache_model", None)  # SageMaker decides
    return found
