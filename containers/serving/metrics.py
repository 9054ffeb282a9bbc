"""What the server counts and times, for whoever asks on the metrics port.

`Metrics` itself keeps nothing: it is what a server without that port has, so that a measurement
costs one empty call there, and nothing of Prometheus is loaded.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

# Takes an amount to add, or a value to observe.
Record: TypeAlias = Callable[[float], None]

# Request and queue: from what a cache hit takes to SageMaker's limit.
SECONDS_BUCKETS: Final = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip
SIZE_BUCKETS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0)


class Metrics:
    """Makes the counters, histograms and gauges of a process; these keep nothing."""

    def counter(self, name: str, description: str) -> Record:  # noqa: ARG002  # for who keeps it
        """Returns what adds to a counter.

        Args:
            name: without the `_total` at its end.
            description: one line for whoever reads the metrics.
        """
        return ignore

    def labelled_counter(
        self,
        name: str,  # noqa: ARG002
        description: str,  # noqa: ARG002
        labels: tuple[str, ...],  # noqa: ARG002
    ) -> Callable[..., None]:
        """Returns what adds one to the counter of the label values that it is given."""
        return ignore

    def histogram(
        self,
        name: str,  # noqa: ARG002
        description: str,  # noqa: ARG002
        buckets: tuple[float, ...],  # noqa: ARG002
    ) -> Record:
        """Returns what observes a value."""
        return ignore

    def gauge(self, name: str, description: str, read: Callable[[], float]) -> None:
        """Adds a value that is read when somebody asks, on the event loop's thread."""

    def text(self) -> bytes:
        """Returns all of it in Prometheus' text format."""
        return b""


def ignore(*_values: object) -> None:
    """Takes what nobody keeps."""
