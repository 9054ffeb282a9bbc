"""A clock that tests move."""

import time
from datetime import datetime


class MovableClock:
    """The real time, plus what was skipped."""

    def __init__(self) -> None:
        self._skipped_seconds = 0.0

    def __call__(self) -> float:
        return time.time() + self._skipped_seconds

    def pass_minute(self) -> None:
        """Moves on to when the minute is over and its alarms are due."""
        now = self()
        self._skipped_seconds += 60 - now % 60 + 0.6

    def move_to(self, moment: str) -> None:
        """Moves to a time with its offset from UTC, such as `2027-03-29T06:59:59+02:00`."""
        self._skipped_seconds += datetime.fromisoformat(moment).timestamp() - self()
