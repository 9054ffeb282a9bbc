"""Scheduled actions of a scalable target, as entries of `schedules`."""

import re
from typing import Any, Final

from slipway.importing.endpoint.answers import Answer
from slipway.importing.endpoint.described import Described, Raw
from slipway.importing.endpoint.findings import Findings

_ABOUT: Final = (
    "ScheduledActionARN", "ServiceNamespace", "ResourceId", "ScalableDimension", "CreationTime",
)  # fmt: skip
_NOT_A_NAME: Final = re.compile(r"[^a-z0-9-]+")


def schedules_of(
    described: Described, target: Raw, fields: tuple[str, str], found: Findings
) -> list[dict[str, Any]]:
    """Returns an entry for each scheduled action of a target.

    Args:
        described: the endpoint.
        target: of DescribeScalableTargets.
        fields: the fields with the lower and the upper bound.
        found: gets what an entry cannot say.
    """
    return [
        _entry(action, target, fields, found)
        for action in described.actions
        if (action["ResourceId"], action["ScalableDimension"])
        == (target["ResourceId"], target["ScalableDimension"])
    ]


def _entry(raw: Raw, target: Raw, fields: tuple[str, str], found: Findings) -> dict[str, Any]:
    action = Answer(raw, _ABOUT)
    name = str(action.take("ScheduledActionName"))
    given = _NOT_A_NAME.sub("-", name.lower()).strip("-")
    entry: dict[str, Any] = {"name": given, "at": action.take("Schedule")}
    if given != name:
        found.change("scheduled action", name, f"{given} now.")
    zone = action.take("Timezone")
    if zone is not None:
        entry["time_zone"] = zone
    for field, source in zip(fields, ("MinCapacity", "MaxCapacity"), strict=True):
        value = action.take("ScalableTargetAction", source)
        if value is None:
            value = target[source]
            reason = f"{value} now, as it is at present."
            found.change(f"scheduled action {name}: {source}", "unset", reason)
        entry[field] = value
    found.leave_out_rest(action, f"scheduled action {name}: ")
    return entry
