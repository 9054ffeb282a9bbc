"""The CloudWatch alarms of an endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def endpoint_alarms(cloudwatch: Any, endpoint_name: str) -> Iterator[dict[str, Any]]:
    """Yields DescribeAlarms' metric alarms that watch an endpoint.

    Args:
        cloudwatch: boto3's client.
        endpoint_name: name of the endpoint, and of the stack that declares its alarms.
    """
    # CloudFormation begins an alarm's name with the stack's.
    pages = cloudwatch.get_paginator("describe_alarms").paginate(
        AlarmNamePrefix=f"{endpoint_name}-"
    )
    for page in pages:
        for alarm in page["MetricAlarms"]:
            # Another endpoint's name may begin with this one's.
            if _watches(alarm, endpoint_name):
                yield alarm


def _watches(alarm: dict[str, Any], endpoint_name: str) -> bool:
    queries = alarm.get("Metrics", ())
    metrics = [alarm, *(query.get("MetricStat", {}).get("Metric", {}) for query in queries)]
    return any(
        {"Name": "EndpointName", "Value": endpoint_name} in metric.get("Dimensions", ())
        for metric in metrics
    )
