"""Variants of an endpoint, and what a rule says of a config without the remedy."""

from typing import Any

from tests.unit.planning.rule_findings import findings


def variants(*named: tuple[str, float], **more: Any) -> dict[str, Any]:
    return {"variants": [{"name": name, "weight": weight, **more} for name, weight in named]}


def messages(*arguments: Any, **sections: Any) -> list[tuple[str, str]]:
    return [(field, message) for field, message, _ in findings(*arguments, **sections)]
