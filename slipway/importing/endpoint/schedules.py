"""Scheduled actions of a scalable target, as entries of `schedules`."""

import re
from typing import Any, Final

from slipway.deployed.answers import Answer
from slipway.deployed.described import Described, Raw
from slipway.deployed.scaling import take_schedule
from slipway.importing.endpoint.findings import Findings

_ABOUT: Final = (
    "ScheduledActionARN", "ServiceNamespace", "ResourceId", "ScalableDimension", "CreationTime",
)  # fmt: skip
_NOT_A_NAME: Final = re.compile(r"[^a-z0-9-]+")


def schedules_of(
    described: Described, target: Raw, fields: tuple[str, str], found: Findings
) -> list[dict[str, Any]]:
    """Returns an entry for each scheduled action of a target."""
    return [_entry(action, target, fields, found) for action in described.actions_of(target)]


def _entry(raw: Raw, target: Raw, fields: tuple[str, str], found: Findings) -> dict[str, Any]:
    action = Answer(raw, _ABOUT)
    entry = take_schedule(action, fields)
    name = str(entry["name"])
    entry["name"] = _NOT_A_NAME.sub("-", name.lower()).strip("-")
    if entry["name"] != name:
        found.change("scheduled action", name, f"{entry['name']} now.")
    for field, source in zip(fields, ("MinCapacity", "MaxCapacity"), strict=True):
        if field not in entry:
            entry[field] = target[source]
            reason = f"{target[source]} now, as it is at present."
            found.change(f"scheduled action {name}: {source}", "unset", reason)
    found.leave_out_rest(action, f"scheduled action {name}: ")
    return entry
