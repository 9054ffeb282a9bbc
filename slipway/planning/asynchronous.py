"""What Slipway calls things of an asynchronous endpoint, and SageMaker's metrics of its queue."""

from collections.abc import Sequence

ASYNC = "async"
BACKLOG_PER_INSTANCE = "ApproximateBacklogSizePerInstance"
"""The metric of target tracking: requests in the queue, divided by the number of instances."""
BACKLOG_WITHOUT_CAPACITY = "HasBacklogWithoutCapacity"
"""The metric that wakes a fleet: 1 while requests are in the queue of a fleet of zero."""
WAKE_POLICY = "wake"
"""Name of the step policy that starts the first instance."""


def topic_types(names: Sequence[str]) -> list[str]:
    """Returns SageMaker's names of topics, for `success` and `error`."""
    return [f"{name.upper()}_NOTIFICATION_TOPIC" for name in names]
