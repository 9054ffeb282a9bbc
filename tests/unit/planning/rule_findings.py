"""What a rule finds in a config."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slipway.config.environments import Environment
from slipway.errors import Kind, dotted
from slipway.facts.instances import InstanceFacts, instance_types
from slipway.planning.rules.situation import Rule, situation_of
from tests.support.projects import LOCAL, model_config


def findings(
    rule: Rule,
    environment: Environment = LOCAL,
    instance: InstanceFacts | None = None,
    **sections: Any,
) -> list[tuple[str, str, str]]:
    config = model_config(**sections)
    situation = situation_of(config, instance_types(), environment)
    if instance is not None:
        placements = tuple(replace(place, instance=instance) for place in situation.placements)
        situation = replace(situation, placements=placements)
    problems = list(rule(situation))
    assert all(problem.kind is Kind.COMPATIBILITY for problem in problems)
    return [(dotted(problem.field), problem.message, problem.remedy) for problem in problems]


def scaling(low: int, high: int) -> dict[str, Any]:
    return {
        "min_instance_count": low,
        "max_instance_count": high,
        "target_invocations_per_instance_per_minute": 60,
    }


def on(name: str) -> dict[str, Any]:
    return {"instances": [name]}
