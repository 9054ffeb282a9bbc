"""Why a rollout was undone: the alarms that went off meanwhile, and the new fleet's first error.

SageMaker's own reason may be missing after it went back to the old fleet. CloudWatch keeps an
alarm's history for 30 days, also when the alarm is long over.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from slipway.access import existing
from slipway.operations.log_text import readable
from slipway.operations.logs import read_log


@dataclass(frozen=True)
class Trip:
    """An alarm that went off during a rollout that it guards; `watches` is its description."""

    alarm: str
    watches: str
    at: datetime
    reason: str

    def __str__(self) -> str:
        return (
            f"alarm {self.alarm} went off during the rollout, at {self.at:%H:%M:%S} UTC "
            f"({self.watches}): {self.reason}"
        )


def find_trips(
    cloudwatch: Any,
    updated: Mapping[str, Any],
    alarms: list[dict[str, Any]],
    since: datetime,
) -> Iterator[Trip]:
    """Yields the alarms of the last rollout that went off, in the order of their config.

    `updated` is DescribeEndpoint's answer, or DescribeInferenceComponent's.
    """
    rollback = updated.get("LastDeploymentConfig", {}).get("AutoRollbackConfiguration", {})
    described = {alarm["AlarmName"]: alarm.get("AlarmDescription", "") for alarm in alarms}
    for name in (item["AlarmName"] for item in rollback.get("Alarms", ())):
        items = cloudwatch.describe_alarm_history(
            AlarmName=name, HistoryItemType="StateUpdate", StartDate=since
        )["AlarmHistoryItems"]
        for item in items:
            state = json.loads(item["HistoryData"])["newState"]
            if state["stateValue"] == "ALARM":
                yield Trip(name, described.get(name, ""), item["Timestamp"], state["stateReason"])
                break


def find_cause(logs: Any, group: str, trips: Sequence[Trip], since: datetime) -> str | None:
    """Returns the first error that a rollout's instances logged; None if no alarm undid it.

    The alarms tell that requests failed, and not why.
    """
    if not trips:
        return None
    arguments = {"logGroupName": group, "orderBy": "LastEventTime", "descending": True}
    found = existing(logs.describe_log_streams, "ResourceNotFoundException", **arguments) or {}
    begin, end = since.timestamp() * 1000, max(each.at for each in trips)
    # The old instances go on, and may log errors of their own.
    streams = [
        each["logStreamName"]
        for each in found.get("logStreams", ())
        if begin <= each["creationTime"] <= end.timestamp() * 1000
    ]
    for line in read_log(logs, group, since, streams) if streams else ():
        text = readable(line.text)
        # A program may print a traceback line by line. Its last line, which is not indented, tells.
        if line.is_error and line.at <= end and not text.startswith((" ", "Traceback")):
            return text.splitlines()[-1]
    return None
