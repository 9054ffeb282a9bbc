"""The last lines that an endpoint's containers wrote."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

# After a failed update: the container that failed, and the one that serves on.
_STREAMS = 2


@dataclass(frozen=True)
class LogLine:
    """A line of the container's log; the time is UTC."""

    at: datetime
    stream: str
    text: str


def last_lines(logs: Any, group: str, count: int) -> Iterator[LogLine]:
    """Yields the last lines of the two streams that were written to last, the newest stream last.

    A log group that does not exist has no lines.
    """
    if count == 0:
        return
    try:
        streams = logs.describe_log_streams(
            logGroupName=group, orderBy="LastEventTime", descending=True, limit=_STREAMS
        )["logStreams"]
    except logs.exceptions.ResourceNotFoundException:
        return
    for stream in reversed(streams):
        name = stream["logStreamName"]
        events = logs.get_log_events(
            logGroupName=group, logStreamName=name, limit=count, startFromHead=False
        )["events"]
        for event in events:
            moment = datetime.fromtimestamp(event["timestamp"] / 1000, UTC)
            yield LogLine(moment, name, event["message"].rstrip())
