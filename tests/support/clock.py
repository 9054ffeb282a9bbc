"""A clock for the alarms of an embedded AWS that a test moves."""

import time


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
