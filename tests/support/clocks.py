"""A clock that tests move."""

from datetime import datetime

from slipway.embedded_aws.clock import AccountClock


class MovableClock(AccountClock):
    """The account's clock, which tests also move to a moment.

    It begins with a minute, so that a test's first measurements are in one minute.
    """

    def __init__(self) -> None:
        super().__init__()
        self.pass_minute()

    def move(self, seconds: float) -> None:
        self.ahead_seconds += seconds

    def move_to(self, moment: str) -> None:
        """Moves to a time with its offset from UTC, such as `2027-03-29T06:59:59+02:00`."""
        self.ahead_seconds += datetime.fromisoformat(moment).timestamp() - self()
