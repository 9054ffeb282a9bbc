"""The settings of a component's copies, in the files and in the account."""

from typing import Any

from slipway.deployed.answers import Answer
from slipway.deployed.fields import COMPONENT
from slipway.planning.component import ComponentPlan
from slipway.planning.plan import DeploymentPlan


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
