"""Which metrics SageMaker publishes, in the names of the config."""

from collections.abc import Mapping
from typing import Any

from slipway.config.sections.endpoint import Metrics

_SECTION = "endpoint.metrics"


def planned_metrics(metrics: Metrics | None) -> dict[str, Any]:
    """Returns the settings in the files: AWS's defaults where the files have no section."""
    return _settings(**dict(metrics or Metrics.model_validate({})))


def deployed_metrics(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings that an endpoint configuration has."""
    metrics, default = config.get("MetricsConfig", {}), Metrics.model_validate({})
    return _settings(
        enhanced=metrics.get("EnableEnhancedMetrics", default.enhanced),
        publish_frequency_seconds=metrics.get(
            "MetricPublishFrequencyInSeconds", default.publish_frequency_seconds
        ),
        detailed_observability=metrics.get(
            "EnableDetailedObservability", default.detailed_observability
        ),
    )


def _settings(**settings: Any) -> dict[str, Any]:
    return {f"{_SECTION}.{name}": value for name, value in settings.items()}
