"""Finds the instance type that a first config proposes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from slipway.config.checkpoint import CheckpointFacts
from slipway.config.environments import Environment
from slipway.config.messages import describe
from slipway.config.schema import ModelConfig
from slipway.errors import Problem, UserError
from slipway.facts.instances import InstanceFacts, instance_types
from slipway.facts.prices import instance_price_per_hour
from slipway.planning.families import deployment_of
from slipway.planning.memory import estimate
from slipway.planning.quantization import has_bf16
from slipway.planning.resolve import known_problems

# Types are in the same order by price in every region.
_PRICED_IN = "us-east-1"
REASON = (
    "the first type by price (unknown prices last) whose accelerators hold the weights and the "
    "cache of a full batch."
)


def reference(environments: Sequence[Environment]) -> Environment:
    """Returns the environment whose rules decide guesses: the first with releases."""
    releases = (each for each in environments if each.artifacts == "release")
    return next(releases, environments[0])


def cheapest_instance(
    facts: CheckpointFacts,
    content_on: Callable[[str], Mapping[str, Any]],
    environment: Environment,
) -> str | None:
    """Returns the cheapest type with GPUs on which a config has no problem.

    The GPUs compute the checkpoint's precision. Raises `UserError` if there is no such type, with
    the problems of the config, or those on the largest type.
    """
    problems: list[Problem] = []
    for instance in sorted(instance_types().values(), key=_price):
        accelerator = instance.accelerator
        if accelerator is None or not accelerator.is_nvidia_gpu:
            continue
        if facts.dtype == "bf16" and not has_bf16(accelerator):
            continue
        try:
            config = ModelConfig.model_validate(content_on(instance.name))
        except ValidationError as error:
            problems = [describe(each, ModelConfig, {}) for each in error.errors()]
            break
        deployment = deployment_of(config, environment)
        memory = estimate(deployment, instance)
        has_room = memory is None or memory.total_gib <= memory.available_gib
        problems = known_problems(deployment)
        if has_room and not problems:
            return instance.name
    if problems:
        raise UserError(problems)
    return None


def _price(instance: InstanceFacts) -> tuple[bool, float]:
    """Returns a key that sorts types: by price, and at last by memory where none is known."""
    price, accelerator = instance_price_per_hour(instance.name, _PRICED_IN), instance.accelerator
    size = accelerator.count * (accelerator.memory_gib or 0.0) if accelerator else 0.0
    return (price is None, price.usd if price else size)
