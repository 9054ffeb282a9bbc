"""A plan as data, for `slipway plan --json`."""

from dataclasses import fields
from typing import Any

from pydantic_core import to_jsonable_python

from slipway.planning.plan import DeploymentPlan, ServedModel
from slipway.planning.resources import resources_of
from slipway.planning.rollout import fleet_bounds

# The rest follows in the order of the plan's fields.
_FIRST = (
    "config", "environment", "image", "artifact", "weights", "partition", "serving_properties",
    "container_environment", "component", "guests", "variants", "shadow",
)  # fmt: skip


def plan_as_json(plan: DeploymentPlan) -> dict[str, Any]:
    """Returns the plan as data: config and environment without defaults, and what follows."""
    derived = (
        "stack_name", "host", "endpoint_name", "log_group_name", "tags", "artifact_place",
        "vpc", "capture", "at_max_capacity", "dashboard_name",
    )  # fmt: skip
    names = dict.fromkeys((*_FIRST, *(field.name for field in fields(plan)), *derived))
    content = {name: to_jsonable_python(getattr(plan, name)) for name in names}
    content["resources"] = resources_of(plan)
    content["config"] = plan.config.model_dump(
        mode="json", exclude_defaults=True, exclude={"environments"}
    )
    content["environment"] = plan.environment.model_dump(
        mode="json", exclude_defaults=True, exclude={"defaults"}
    )
    if not plan.defaults:
        del content["defaults"]
    _add_addresses(content, plan)
    shadows = [content["shadow"]] if plan.shadow else []
    shown = [*content["variants"], *shadows, *content["overrides"]]
    for item, variant in zip(shown, (*plan.every_variant, *plan.overrides), strict=True):
        if variant.own is None:
            del item["own"]
        else:
            _add_addresses(item["own"], variant.own)
    if not plan.overrides:
        del content["overrides"]
    if plan.rollout is not None:
        fewest, _ = fleet_bounds(plan.config)
        content["rollout"] = {
            "shares_percent": list(plan.rollout.shares_percent(fewest)),
            "least_seconds": plan.rollout.least_seconds(fewest),
        }
    if plan.component is not None:
        del content["component"]["settings"]  # the config has them
        content["component"]["max_instance_count"] = plan.max_instance_count
    return content


def _add_addresses(content: dict[str, Any], served: ServedModel) -> None:
    content["image"]["uri"] = served.image.uri
    content["artifact"]["s3_uri"] = served.artifact.s3_uri
    if served.weights is not None:
        content["weights"]["s3_uri"] = served.weights.s3_uri
