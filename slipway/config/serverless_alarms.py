"""The metrics that alarms of serverless endpoints read in place of an instance's.

AWS's list of them is exhaustive: without `InvocationModelErrors`, and of machines it has the use of
memory alone. AWS counts no refused request, so that an alarm watches the use of the concurrency.

Source, read 2026-11-29:
https://docs.aws.amazon.com/sagemaker/latest/dg/serverless-endpoints-monitoring.html
"""

from collections.abc import Mapping

from slipway.config.alarm_kinds import REQUESTS, Formula, Metric, MetricGroup, Watch

SERVERLESS_REQUESTS = MetricGroup("Serverless", "AWS/SageMaker", "notBreaching")
CONCURRENCY = "ServerlessConcurrentExecutionsUtilization"

SERVERLESS_WATCHES: Mapping[str, Watch | None] = {
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
}
"""By the field of the threshold; None for an alarm that a serverless endpoint has no data for."""
