"""What a policy is given, and what it returns."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from slipway.codes.code import OwnCode
from slipway.errors import Kind, Problem
from slipway.planning.cost import HOURS_PER_MONTH
from slipway.planning.plan import DeploymentPlan

UNNAMED = OwnCode("policy")
"""The code of a problem until the name of its policy is known."""

# Costs of a month are rounded to cents.
_DIGITS = 4


@dataclass(frozen=True)
class Plan:
    """What a policy sees of a model in an environment.

    Args:
        image_uri: the image that SageMaker pulls.
        instance_types: of all variants, each once.
        max_usd_per_hour: cost of the most instances, each of the dearest type of its pool, with
            their volumes; 0 for a model on the endpoint of another; None if a price is unknown.
        unpriced: what has no known price in the region.
        tags: of every resource, with Slipway's own tags.
        config: the model's file as data, with the environment's section and all defaults.
            docs/reference.md has the names.
    """

    name: str
    environment: str
    account: str
    region: str
    image_uri: str
    instance_types: tuple[str, ...]
    max_usd_per_hour: float | None
    unpriced: tuple[str, ...]
    tags: Mapping[str, str]
    config: Mapping[str, Any]

    @classmethod
    def of(cls, plan: DeploymentPlan) -> "Plan":
        types = (name for variant in plan.every_variant for name in variant.instance_types)
        costs = [each.maximum for each in (plan.cost.instances, plan.cost.volumes) if each]
        known = [usd for usd in costs if usd is not None]
        per_hour = round(sum(known) / HOURS_PER_MONTH, _DIGITS)
        return cls(
            name=plan.config.name,
            environment=plan.environment.name,
            account=plan.environment.account,
            region=plan.environment.region,
            image_uri=plan.image.uri,
            instance_types=tuple(dict.fromkeys(types)),
            max_usd_per_hour=per_hour if len(known) == len(costs) else None,
            unpriced=plan.cost.unknown,
            tags=plan.tags,
            config=plan.config.model_dump(mode="json", exclude={"environments"}),
        )


Policy = Callable[[Plan], Iterable[Problem]]
"""A function that returns or yields the problems of a plan; none if the plan meets it."""


def problem(message: str, remedy: str, *field: str | int) -> Problem:
    """Makes the problem of a plan.

    Args:
        message: what is wrong, with the value and the limit.
        remedy: what to do, as an instruction.
        field: path of the field of the model's file that is to blame, whose line is reported:
            `"endpoint", "instances", 0`. Behind `"environment"` it is a field of the environment.
    """
    return Problem(UNNAMED, Kind.COMPATIBILITY, message, remedy, field)
