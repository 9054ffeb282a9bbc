"""The metrics that alarms of other modes than `realtime` read in place of the metrics of requests.

An asynchronous endpoint has neither `Invocations` nor `InvocationModelErrors` nor
`OverheadLatency`, so alarms on them would never get data. `TimeInBacklog` has one value for each
request that leaves the queue, so its number of values is the number of requests. AWS publishes
none of these metrics for a single fleet. A rollback alarm therefore watches both.

AWS's list for serverless endpoints is exhaustive: without `InvocationModelErrors`, and of machines
it has the use of memory alone. AWS counts no refused request, so that an alarm watches the use of
the concurrency.

Sources, read 2026-11-24 and 2026-11-29:
https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference-monitor.html
https://docs.aws.amazon.com/sagemaker/latest/dg/serverless-endpoints-monitoring.html
"""

from collections.abc import Mapping
from dataclasses import replace

from slipway.config.alarm_kinds import (
    CLIENT_ERRORS,
    REQUESTS,
    AlarmKind,
    Formula,
    Metric,
    MetricGroup,
    Watch,
)

ASYNC_REQUESTS = MetricGroup("Requests of a queue", "AWS/SageMaker", "notBreaching", mode="async")
QUEUE = MetricGroup("Queue", "AWS/SageMaker", "notBreaching", of_variant=False, mode="async")
SERVERLESS_REQUESTS = MetricGroup("Serverless", "AWS/SageMaker", "notBreaching", mode="serverless")
CONCURRENCY = "ServerlessConcurrentExecutionsUtilization"

_REQUESTS = Metric(
    "TimeInBacklog",
    "Microseconds",
    "SampleCount",
    "Time that a request was in the queue. The alarm takes the number of requests from it.",
    "requests",
)
_WATCHES: Mapping[str, Mapping[str, Watch | None]] = {
    "async": {
        "server_error_rate_percent": Watch(
            "ServerErrorRate",
            "share of requests that failed for another reason than a 4XX answer, in percent",
            ASYNC_REQUESTS,
            (
                Metric(
                    "InvocationFailures",
                    "Count",
                    "Sum",
                    "Requests that failed, for whatever reason: no 2XX answer, no answer in time, "
                    "or an object that could not be read or written.",
                    "failures",
                ),
                CLIENT_ERRORS,
                _REQUESTS,
            ),
            (
                Formula(
                    "rate",
                    "100 * (failures - client_errors) / requests",
                    "Failed without a 4XX (%)",
                ),
            ),
        ),
        "client_error_rate_percent": Watch(
            "ClientErrorRate",
            "share of requests answered 4XX, in percent",
            ASYNC_REQUESTS,
            (CLIENT_ERRORS, _REQUESTS),
            (Formula("rate", "100 * client_errors / requests", "4XX rate (%)"),),
        ),
        "overhead_latency_p99_milliseconds": None,
    },
    "serverless": {
        "server_error_rate_percent": Watch(
            "ServerErrorRate",
            "share of invocations answered 5XX, in percent",
            REQUESTS,
            (
                Metric("Invocation5XXErrors", "None", "Sum", "Requests answered 5XX.", "errors"),
                Metric("Invocations", "None", "Sum", "All requests.", "invocations"),
            ),
            (Formula("rate", "100 * errors / invocations", "5XX rate (%)"),),
        ),
        "disk_utilization_percent": None,
        "gpu_memory_utilization_percent": None,
    },
}
"""By mode, and by the field of the threshold; None for an alarm that the mode has no data for.

Every other alarm reads the same metrics as in real time.
"""


def watch_of(kind: AlarmKind, mode: str) -> Watch | None:
    """Returns what an alarm watches; None if an endpoint of the mode has no data for it."""
    if kind.watch.group.mode not in ("", mode):
        return None
    others = _WATCHES.get(mode, {})
    if kind.field in others:
        return others[kind.field]
    if mode == "async" and kind.watch.group is REQUESTS:
        return replace(kind.watch, group=ASYNC_REQUESTS)
    return kind.watch
