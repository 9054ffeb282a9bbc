"""Measures the backlogs of asynchronous endpoints on the clock."""

import threading
from collections.abc import Callable, Iterable

from embedded_aws.hosting.fleets import Endpoint

_INTERVAL_SECONDS = 10.0
_SHORTEST_INTERVAL_SECONDS = 0.1


class BacklogSampler:
    """Records the backlog of every asynchronous endpoint, several times a minute.

    Args:
        endpoints: returns every endpoint.
        time_scale: factor on the interval.
    """

    def __init__(
        self, endpoints: Callable[[], Iterable[Endpoint]], *, time_scale: float = 1.0
    ) -> None:
        self._endpoints = endpoints
        self._interval_seconds = max(_INTERVAL_SECONDS * time_scale, _SHORTEST_INTERVAL_SECONDS)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="backlog-sampler", daemon=True)
        self._thread.start()

    def sample(self) -> None:
        """Records every backlog once."""
        for endpoint in self._endpoints():
            if endpoint.queue is not None:
                endpoint.queue.sample()

    def close(self) -> None:
        """Stops the thread."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(self._interval_seconds):
            self.sample()
