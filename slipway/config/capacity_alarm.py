"""The alarm `alarms.at_max_capacity`: its metrics, and the number that it compares.

SageMaker publishes no number of instances. It sends 1 divided by the number of active instances
with every request, as `InvocationsPerInstance`. The requests divided by the sum of these values are
therefore the number of instances. Both metrics have data in every minute with requests, and a fleet
without requests needs no more capacity.

An inference component has `InvocationsPerCopy` in its place, "normalized by each copy". An
asynchronous endpoint has the size of its queue, as a whole and for each instance. With an empty
queue there is no data, and no alarm.

Sources, read 2026-11-25:

- https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch.html
- https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference-monitor.html
"""

from collections.abc import Mapping

from slipway.config.alarm_kinds import REQUESTS, Formula, Metric, MetricGroup, Watch
from slipway.config.alarms_of_modes import QUEUE

_NAME = "AtMaxCapacity"
_REQUESTS = Metric("Invocations", "None", "Sum", "All requests.", "invocations")
_BACKLOG = Metric(
    "ApproximateBacklogSize", "Count", "Average", "Requests that wait or are computed.", "backlog"
)


def _quotient(group: MetricGroup, counted: str, whole: Metric, share: Metric) -> Watch:
    """Returns the row of an alarm that counts by dividing a whole by the share of one."""
    expression = f"{whole.query} / {share.query}"
    formula = Formula(counted, expression, counted.capitalize())
    return Watch(_NAME, f"number of {counted}", group, (whole, share), (formula,))


CAPACITY_WATCHES: Mapping[str, Watch] = {
    "realtime": _quotient(
        REQUESTS,
        "instances",
        _REQUESTS,
        Metric(
            "InvocationsPerInstance",
            "None",
            "Sum",
            "Requests of one instance. The alarm divides all requests by it.",
            "invocations_per_instance",
        ),
    ),
    "async": _quotient(
        QUEUE,
        "instances",
        _BACKLOG,
        Metric(
            "ApproximateBacklogSizePerInstance",
            "Count",
            "Average",
            "The same, divided by the number of instances.",
            "backlog_per_instance",
        ),
    ),
    "scale_to_zero": _quotient(
        REQUESTS,
        "copies",
        _REQUESTS,
        Metric(
            "InvocationsPerCopy",
            "None",
            "Sum",
            "Requests of one copy of an inference component. The alarm divides all requests by it.",
            "invocations_per_copy",
        ),
    ),
}
"""The row of the alarm by `endpoint.mode`.

It is not in the table of alarms, because its threshold is no field.
"""

# The quotient is a whole number, apart from the last digits of a sum of fractions.
MARGIN = 0.5
