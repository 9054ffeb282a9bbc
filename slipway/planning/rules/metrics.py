"""Rules about the metrics that SageMaker publishes.

Sources, read 2026-11-25:
https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch-enhanced-metrics.html and
https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch-detailed-observability.html
"""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.config.alarm_kinds import MACHINES
from slipway.config.sections.alarms import ALARM_KINDS
from slipway.errors import Problem
from slipway.planning.deployment import Deployment, problem

_SECTION = ("endpoint", "metrics")
_FREQUENCY = (*_SECTION, "publish_frequency_seconds")
_PERIOD_SECONDS = 60
_AT_MOST_A_MINUTE = "Set `publish_frequency_seconds` to 10, 30 or 60"


def requests_are_counted_each_minute(deployment: Deployment) -> Iterator[Problem]:
    """Alarms and autoscaling read the metrics of requests in periods of a minute.

    A minute without a value is no failure, so several minutes in a row would never be too bad.
    """
    metrics = deployment.config.endpoint.metrics
    if metrics is None or not metrics.enhanced:
        return
    if metrics.publish_frequency_seconds > _PERIOD_SECONDS:
        yield problem(
            Code.METRICS,
            f"with `enhanced`, the metrics of requests come every "
            f"{metrics.publish_frequency_seconds} seconds, and alarms read them every minute",
            f"{_AT_MOST_A_MINUTE}, or `enhanced` to false.",
            _FREQUENCY,
        )


def machines_are_measured_each_minute(deployment: Deployment) -> Iterator[Problem]:
    """Alarms and autoscaling read the metrics of machines in periods of a minute."""
    config = deployment.config
    metrics = config.endpoint.metrics
    if metrics is None or metrics.publish_frequency_seconds <= _PERIOD_SECONDS:
        return
    readers = [
        f"alarms.{kind.field}"
        for kind in ALARM_KINDS.values()
        if kind.watch.group is MACHINES and config.alarms.threshold(kind) is not None
    ]
    if config.autoscaling and config.autoscaling.target_gpu_utilization_percent is not None:
        readers.append("autoscaling.target_gpu_utilization_percent")
    for reader in readers:
        yield problem(
            Code.METRICS,
            f"the metrics of machines come every {metrics.publish_frequency_seconds} seconds, and "
            f"`{reader}` reads them every minute",
            f"{_AT_MOST_A_MINUTE}, or remove `{reader}`.",
            _FREQUENCY,
        )
