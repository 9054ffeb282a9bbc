"""The lines that a model's containers wrote: of a time, the last ones, and those that come."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from botocore.exceptions import ClientError

from slipway.access import existing, paged
from slipway.config.names import KEPT_LOGS
from slipway.json_text import parse_json

LOG_GROUPS: Final = ("/aws/sagemaker/Endpoints/", "/aws/sagemaker/InferenceComponents/", KEPT_LOGS)
_MISSING: Final = "ResourceNotFoundException"
_DENIED: Final = "AccessDeniedException"
POLL_SECONDS: Final = 2.0
# CloudWatch may show an event later than one with a later time.
_LATE_MILLISECONDS: Final = 30_000
_ERROR_LEVELS: Final = frozenset({"critical", "error", "fatal"})
# Of programs that write no level: Python, C++ and Java say so in these words.
_ERROR: Final = re.compile(
    r"\b(error|exception|fatal|traceback|panic|out of memory)\b|\w(Error|Exception)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class LogEvent:
    """A line of a container's log, in UTC; a stream is one instance's container."""

    at: datetime
    group: str
    stream: str
    text: str

    @property
    def is_error(self) -> bool:
        """Returns whether the line tells of an error: by its level if it has one, else by words."""
        try:
            fields = parse_json(self.text)
        except ValueError:
            fields = None
        if isinstance(fields, Mapping) and "level" in fields:
            return str(fields["level"]).lower() in _ERROR_LEVELS
        return _ERROR.search(self.text) is not None


def find_groups(logs: Any, stack_name: str) -> list[str]:
    """Returns the log groups of a model that exist: of its endpoint, its copies, or kept ones.

    Raises ClientError if none is found, and one may not be read.
    """
    found, denied = list[str](), list[ClientError]()
    for prefix in LOG_GROUPS:
        name = f"{prefix}{stack_name}"
        try:
            if existing(logs.filter_log_events, _MISSING, logGroupName=name, limit=1) is not None:
                found.append(name)
        except ClientError as error:
            if error.response["Error"]["Code"] != _DENIED:
                raise
            # The policy of `slipway iam` has the groups of the model's own mode alone.
            denied.append(error)
    if denied and not found:
        raise denied[0]
    return found


def read_log(
    logs: Any, group: str, since: datetime, streams: Sequence[str] = ()
) -> Iterator[LogEvent]:
    """Yields the lines of a group since a time, or of some streams, in the order of their times."""
    start = int(since.timestamp() * 1000)
    for event in _events(logs, group, start, streams):
        yield _line(event, group)


def follow_log(
    logs: Any, group: str, since: datetime, wait: Callable[[float], None] = time.sleep
) -> Iterator[LogEvent]:
    """Yields the lines of a group since a time, and then each line that comes, without an end.

    CloudWatch tells nobody of new lines, so that they are asked for every `POLL_SECONDS`.
    """
    start, told = int(since.timestamp() * 1000), dict[str, int]()
    while True:
        for event in _events(logs, group, start):
            if event["eventId"] not in told:
                told[event["eventId"]] = event["timestamp"]
                yield _line(event, group)
        start = max(start, max(told.values(), default=start) - _LATE_MILLISECONDS)
        told = {name: at for name, at in told.items() if at >= start}
        wait(POLL_SECONDS)


def _events(
    logs: Any, group: str, start_milliseconds: int, streams: Sequence[str] = ()
) -> list[dict[str, Any]]:
    arguments: dict[str, Any] = {"logGroupName": group, "startTime": start_milliseconds}
    if streams:
        arguments["logStreamNames"] = list(streams)
    found = paged(logs, "filter_log_events", "events", **arguments)
    return sorted(found, key=lambda event: event["timestamp"])


def _line(event: Mapping[str, Any], group: str) -> LogEvent:
    moment = datetime.fromtimestamp(event["timestamp"] / 1000, UTC)
    return LogEvent(moment, group, event["logStreamName"], event["message"].rstrip())


# After a failed update: the container that failed, and the one that serves on.
_STREAMS = 2


@dataclass(frozen=True)
class LogLine:
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
