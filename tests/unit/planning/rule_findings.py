"""What a rule finds in a config."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from slipway.config.environments import Environment
from slipway.errors import Kind, Problem, dotted
from slipway.facts.instances import InstanceFacts
from slipway.planning.deployment import Deployment, Rule
from slipway.planning.families import FAMILIES, deployment_of
from slipway.planning.rules import RULES
from tests.support.projects import LOCAL, model_config

T = TypeVar("T")


def findings(
    rule: Rule,
    environment: Environment = LOCAL,
    instance: InstanceFacts | None = None,
    **sections: Any,
) -> list[tuple[str, str, str]]:
    config = model_config(**sections)
    deployment = deployment_of(config, environment)
    if instance is not None:
        placements = tuple(replace(place, instance=instance) for place in deployment.placements)
        deployment = replace(deployment, placements=placements)
    problems = list(rule(deployment))
    assert all(problem.kind is Kind.COMPATIBILITY for problem in problems)
    return [(dotted(problem.field), problem.message, problem.remedy) for problem in problems]


def refused_fields(rule: Rule, environment: Environment = LOCAL, **sections: Any) -> list[str]:
    """Returns the fields that a rule refuses, whose words stand in a golden report."""
    return [field for field, _, _ in findings(rule, environment, **sections)]


def only(found: Sequence[T]) -> T:
    """Returns the one thing that a rule or an advice says."""
    assert len(found) == 1, found
    return found[0]


def all_of(rules: Iterable[Rule]) -> Rule:
    return lambda deployment: (problem for rule in rules for problem in rule(deployment))


def every_rule(deployment: Deployment) -> Iterator[Problem]:
    """Applies the rules of all families and of the deployment's own."""
    for rule in RULES:
        yield from rule(deployment)
    yield from own_rules(deployment)


def own_rules(deployment: Deployment) -> Iterator[Problem]:
    """Applies the rules of the deployment's family."""
    yield from FAMILIES[deployment.container].problems(deployment)


def scaling(low: int, high: int) -> dict[str, Any]:
    return {
        "min_instance_count": low,
        "max_instance_count": high,
        "target_invocations_per_instance_per_minute": 60,
    }


def on(name: str) -> dict[str, Any]:
    return {"instances": [name]}


def variants(*named: tuple[str, float], **more: Any) -> dict[str, Any]:
    return {"variants": [{"name": name, "weight": weight, **more} for name, weight in named]}


def messages(*arguments: Any, **sections: Any) -> list[tuple[str, str]]:
    return [(field, message) for field, message, _ in findings(*arguments, **sections)]
