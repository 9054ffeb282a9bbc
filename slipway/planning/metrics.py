"""The metrics of an endpoint that SageMaker publishes in CloudWatch."""

from dataclasses import dataclass

from slipway.config.schema import ModelConfig


@dataclass(frozen=True)
class MetricsPlan:
    """The MetricsConfig of an endpoint configuration.

    Every value is written, so that no template depends on a default that AWS may change.

    Args:
        enhanced: whether metrics are also published for each instance and copy.
        publish_frequency_seconds: interval of the metrics.
        detailed_observability: whether AWS collects OpenTelemetry metrics.
    """

    enhanced: bool
    publish_frequency_seconds: int
    detailed_observability: bool


def metrics_plan(config: ModelConfig) -> MetricsPlan | None:
    """Returns the metrics of an endpoint; None for AWS's defaults."""
    metrics = config.endpoint.metrics
    if metrics is None:
        return None
    return MetricsPlan(
        metrics.enhanced, metrics.publish_frequency_seconds, metrics.detailed_observability
    )
