"""The last lines of a model's log: those that are there at first, and then each line that comes."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from slipway.operations.logs import LogEvent, find_groups, last_lines, read_log

_MOST_LINES: Final = 400
_FIRST_LINES: Final = 100
# CloudWatch may show an event later than one with a later time.
_LATE: Final = timedelta(seconds=30)


class LogTail:
    """Remembers what was read, so that each look asks for the newest lines only."""

    def __init__(self) -> None:
        self._lines: list[LogEvent] = []

    def look(self, logs: Any, stack_name: str) -> list[LogEvent]:
        """Returns the last lines of a model, in the order of their times."""
        groups = find_groups(logs, stack_name)
        if not groups or not self._lines:
            found = [line for group in groups for line in _last(logs, group)]
        else:
            start = self._lines[-1].at - _LATE
            # CloudWatch may answer a late line twice. The newer answer replaces the older one.
            found = [line for line in self._lines if line.at < start]
            found += [line for group in groups for line in read_log(logs, group, start)]
        self._lines = sorted(found, key=lambda line: line.at)[-_MOST_LINES:]
        return self._lines


def _last(logs: Any, group: str) -> Iterator[LogEvent]:
    for line in last_lines(logs, group, _FIRST_LINES):
        yield LogEvent(line.at, group, line.stream, line.text)
