"""The time in the account: the machine's time, and the minutes that were passed over."""

import time

MINUTE_SECONDS = 60
# A minute's alarms are due half a second after it, when the last values of it have arrived.
_AFTER_MINUTE_SECONDS = 0.6


class AccountClock:
    """The time in the account, in seconds since the epoch, at the pace of the machine's.

    Attributes:
        ahead_seconds: its lead over the machine's clock.
    """

    def __init__(self) -> None:
        self.ahead_seconds = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead_seconds

    def end_last_minute(self) -> None:
        """Moves on to when the alarms of the last minute are due, unless they were already."""
        self.ahead_seconds += max(_AFTER_MINUTE_SECONDS - self() % MINUTE_SECONDS, 0.0)

    def pass_minute(self) -> None:
        """Moves on to when the minute is over and its alarms are due."""
        now = self()
        self.ahead_seconds += MINUTE_SECONDS - now % MINUTE_SECONDS + _AFTER_MINUTE_SECONDS


class Deadline:
    """The end of a wait that passes on the account's clock.

    `time_scale` is a factor on the wait and on minutes that are passed over; tests shorten both.
    """

    def __init__(self, clock: AccountClock, wait_seconds: float, time_scale: float) -> None:
        self._clock = clock
        self._time_scale = time_scale
        self._end_seconds = self._now_seconds() + wait_seconds * time_scale

    def remaining_seconds(self) -> float:
        """Returns the rest of the wait, of the machine's time; 0 or less when it is over."""
        return self._end_seconds - self._now_seconds()

    def _now_seconds(self) -> float:
        # The machine's clock may be set; its monotonic time may not.
        return time.monotonic() + self._clock.ahead_seconds * self._time_scale
