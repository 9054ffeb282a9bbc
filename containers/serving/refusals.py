"""Refused requests: when each is answered, and one line in the log for many."""

import asyncio
from typing import Final

from containers.serving.logs import log_warning

_SECONDS_PER_LINE: Final = 1.0
# A refusal takes less than a millisecond of processor time.
_REFUSALS_PER_SECOND: Final = 200
# The least Retry-After. A client that waits for it loses no more than that.
_LONGEST_REFUSAL_SECONDS: Final = 1.0


class Refusals:
    """Paces refusals, counts them, and writes at most one line a second.

    Clients that ignore Retry-After would otherwise spend all of the server's time on refusals.
    """

    def __init__(self) -> None:
        self._count = 0
        self._next_at = float("-inf")

    def book(self, now: float) -> float:
        """Returns when a request may be refused, by the clock of `now`; a lone one is at once."""
        at = min(max(now, self._next_at), now + _LONGEST_REFUSAL_SECONDS)
        self._next_at = at + 1 / _REFUSALS_PER_SECOND
        return at

    def are_too_many(self, now: float) -> bool:
        return self._next_at > now

    def count(self) -> None:
        if not self._count:
            asyncio.get_running_loop().call_later(_SECONDS_PER_LINE, self.write)
        self._count += 1

    def write(self) -> None:
        if self._count:
            log_warning("requests_refused", requests=self._count)
        self._count = 0
