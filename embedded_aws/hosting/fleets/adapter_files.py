"""One version of an adapter's files in the copies of its base, and the requests that use it."""

import threading

from slipway.embedded_aws.hosting.fleets.running_variant import RunningVariant

# Longer than any request may take.
_DRAIN_SECONDS = 65.0


class AdapterFiles:
    """The version: the adapter's name in requests to the server, and the URL of the archive."""

    def __init__(self, identifier: str, url: str) -> None:
        self.identifier, self.url = identifier, url
        self._in_flight = 0
        self._idle = threading.Condition()

    def enter(self) -> None:
        """Counts a request in."""
        with self._idle:
            self._in_flight += 1

    def leave(self) -> None:
        """Counts a request out."""
        with self._idle:
            self._in_flight -= 1
            self._idle.notify_all()

    def unload(self, copies: list[RunningVariant]) -> None:
        """Removes the files from the copies, after the last answer of a request that uses them."""
        with self._idle:
            self._idle.wait_for(lambda: self._in_flight == 0, _DRAIN_SECONDS)
        for copy in copies:
            copy.unload_adapter(self.identifier)
