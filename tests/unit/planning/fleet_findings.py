"""Variants of an endpoint, and a rule's messages about a config, without the remedies."""

from typing import Any

from tests.unit.planning.rule_findings import findings


def variants(*named: tuple[str, float], **more: Any) -> dict[str, Any]:
    return {"variants": [{"name": name, "weight": weight, **more} for name, weight in named]}


def messages(*arguments: Any, **sections: Any) -> list[tuple[str, str]]:
    return [(field, message) for field, message, _ in findings(*arguments, **sections)]
