"""Why a rollout was undone: the alarms that went off while it was in progress.

SageMaker's own reason may be missing after it went back to the old fleet. CloudWatch keeps an
alarm's history for 30 days, also when the alarm is long over.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Trip:
    """An alarm that went off during a rollout that it guards.

    Args:
        alarm: name.
        watches: its description.
        at: when it went off, in UTC.
        reason: CloudWatch's, with the value and the threshold.
    """

    alarm: str
    watches: str
    at: datetime
    reason: str

    def __str__(self) -> str:
        """Returns a line for people."""
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

    Args:
        cloudwatch: boto3's client.
        updated: DescribeEndpoint's answer, or DescribeInferenceComponent's.
        alarms: DescribeAlarms' answers for the stack's alarms.
        since: beginning of the deployment.
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
