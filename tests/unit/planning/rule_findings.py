"""What a rule finds in a config."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from slipway.config.environments import Environment
from slipway.errors import Kind, Problem, dotted
from slipway.facts.instances import InstanceFacts
from slipway.planning.families import FAMILIES, situation_of
from slipway.planning.rules import RULES
from slipway.planning.situation import Rule, Situation
from tests.support.projects import LOCAL, model_config


def findings(
    rule: Rule,
    environment: Environment = LOCAL,
    instance: InstanceFacts | None = None,
    **sections: Any,
) -> list[tuple[str, str, str]]:
    config = model_config(**sections)
    situation = situation_of(config, environment)
    if instance is not None:
        placements = tuple(replace(place, instance=instance) for place in situation.placements)
        situation = replace(situation, placements=placements)
    problems = list(rule(situation))
    assert all(problem.kind is Kind.COMPATIBILITY for problem in problems)
    return [(dotted(problem.field), problem.message, problem.remedy) for problem in problems]


def refused_fields(rule: Rule, environment: Environment = LOCAL, **sections: Any) -> list[str]:
    """Returns the fields that a rule refuses, whose words stand in a golden report."""
    return [field for field, _, _ in findings(rule, environment, **sections)]


def every_rule(situation: Situation) -> Iterator[Problem]:
    """Applies the rules of all families and of the situation's own."""
    for rule in RULES:
        yield from rule(situation)
    yield from own_rules(situation)


def own_rules(situation: Situation) -> Iterator[Problem]:
    """Applies the rules of the situation's family."""
    yield from FAMILIES[situation.container].problems(situation)


def scaling(low: int, high: int) -> dict[str, Any]:
    return {
        "min_instance_count": low,
        "max_instance_count": high,
        "target_invocations_per_instance_per_minute": 60,
    }


def on(name: str) -> dict[str, Any]:
    return {"instances": [name]}
