"""The CloudWatch alarms of an endpoint."""

from collections.abc import Iterator
from typing import Any

from slipway.planning.described_alarms import watches


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
            if watches(alarm, endpoint_name):
                yield alarm
