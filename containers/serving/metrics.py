"""The server's counters and timers, for readers of the metrics port.

`Metrics` itself keeps nothing. A server without a metrics port uses it: each measurement costs one
empty call, and nothing of Prometheus is loaded.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

# Called with an amount to add, or with a value to observe.
Record: TypeAlias = Callable[[float], None]

# Seconds in the queue and of a request: from a cache hit to SageMaker's limit.
SECONDS_BUCKETS: Final = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
)
SIZE_BUCKETS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0)


class Metrics:
    """Creates the counters, histograms and gauges of a process; this base class keeps no values.

    A name ends with the unit of its values, and a counter's has no `_total`.
    """

    def counter(self, _name: str, _description: str) -> Record:
        return ignore

    def labelled_counter(
        self, _name: str, _description: str, _labels: tuple[str, ...]
    ) -> Callable[..., None]:
        """Returns a function that takes label values in order and adds one to their counter."""
        return ignore

    def histogram(self, _name: str, _description: str, _buckets: tuple[float, ...]) -> Record:
        return ignore

    def gauge(self, name: str, description: str, read: Callable[[], float]) -> None:
        """Adds a value that is read, on the event loop, whenever the metrics are read."""

    def text(self) -> bytes:
        return b""


def ignore(*_values: object) -> None:
    """Accepts any values and does nothing."""
