"""The metrics that alarms of asynchronous endpoints read in place of the metrics of requests.

An asynchronous endpoint has neither `Invocations` nor `InvocationModelErrors` nor
`OverheadLatency`, so alarms on them would never get data. `TimeInBacklog` has one value for each
request that leaves the queue, so its number of values is the number of requests.

AWS publishes none of these metrics for a single fleet. A rollback alarm therefore watches both.

Source, read 2026-11-24: https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference-monitor.html
"""

from collections.abc import Mapping
from dataclasses import replace

from slipway.config.alarm_kinds import (
    REQUESTS,
    AlarmKind,
    Formula,
    Metric,
    MetricGroup,
    Watch,
)
from slipway.config.serverless_alarms import SERVERLESS_REQUESTS, SERVERLESS_WATCHES

ASYNC_REQUESTS = MetricGroup("Requests of a queue", "AWS/SageMaker", "notBreaching")
QUEUE = MetricGroup("Queue", "AWS/SageMaker", "notBreaching", of_variant=False)

_REQUESTS = Metric(
    "TimeInBacklog",
    "Microseconds",
    "SampleCount",
    "Time that a request was in the queue. The alarm takes the number of requests from it.",
    "requests",
)
_CLIENT_ERRORS = Metric(
    "Invocation4XXErrors",
    "None",
    "Sum",
    "Requests that the container answered 4XX.",
    "client_errors",
)

ASYNC_WATCHES: Mapping[str, Watch | None] = {
    "server_error_rate_percent": Watch(
        "ServerErrorRate",
        "share of requests that failed for another reason than a 4XX answer, in percent",
        ASYNC_REQUESTS,
        (
            Metric(
                "InvocationFailures",
                "Count",
                "Sum",
                "Requests that failed, for whatever reason: no 2XX answer, no answer in time, or "
                "an object that could not be read or written.",
                "failures",
            ),
            _CLIENT_ERRORS,
            _REQUESTS,
        ),
        (
            Formula(
                "rate", "100 * (failures - client_errors) / requests", "Failed without a 4XX (%)"
            ),
        ),
    ),
    "client_error_rate_percent": Watch(
        "ClientErrorRate",
        "share of requests answered 4XX, in percent",
        ASYNC_REQUESTS,
        (_CLIENT_ERRORS, _REQUESTS),
        (Formula("rate", "100 * client_errors / requests", "4XX rate (%)"),),
    ),
    "overhead_latency_p99_milliseconds": None,
}
"""By the field of the threshold; None for an alarm that an asynchronous endpoint has no data for.

Every other alarm reads the same metrics as in real time.
"""
_OF_MODES = {"async": ASYNC_WATCHES, "serverless": SERVERLESS_WATCHES}


def watch_of(kind: AlarmKind, mode: str) -> Watch | None:
    """Returns what an alarm watches; None if an endpoint of the mode has no data for it."""
    if mode != "serverless" and kind.watch.group is SERVERLESS_REQUESTS:
        return None
    if mode != "async" and kind.watch.group is QUEUE:
        return None
    others = _OF_MODES.get(mode, {})
    if kind.field in others:
        return others[kind.field]
    if mode == "async" and kind.watch.group is REQUESTS:
        return replace(kind.watch, group=ASYNC_REQUESTS)
    return kind.watch
