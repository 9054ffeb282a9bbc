"""MetricsConfig of an endpoint configuration: which metrics SageMaker publishes, and how often.

Sources, read 2026-11-25:
https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch-enhanced-metrics.html and
https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-detailed-observability-metric-mapping.html
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slipway.embedded_aws.api import ValidationError

DEFAULT_SECONDS = 60
_FREQUENCIES = (10, 30, 60, 120, 180, 240, 300)


@dataclass(frozen=True)
class PublishedMetrics:
    """Whether metrics are also there for each instance and copy, and the interval of machines'."""

    is_enhanced: bool = False
    machines_seconds: int = DEFAULT_SECONDS

    @property
    def requests_seconds(self) -> int:
        """Returns the interval of the metrics of requests, which only enhanced metrics change."""
        return self.machines_seconds if self.is_enhanced else DEFAULT_SECONDS

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> "PublishedMetrics":
        """Reads CreateEndpointConfig's request; raises `ValidationError` as SageMaker does."""
        declared = parameters.get("MetricsConfig", {})
        seconds = declared.get("MetricPublishFrequencyInSeconds", DEFAULT_SECONDS)
        if seconds not in _FREQUENCIES:
            # AWS lists the values, and quotes no message.
            raise ValidationError(
                f"MetricPublishFrequencyInSeconds {seconds} is not one of "
                f"{', '.join(map(str, _FREQUENCIES))}."
            )
        is_enhanced = declared.get("EnableEnhancedMetrics", False)
        if is_enhanced and "AsyncInferenceConfig" in parameters:
            raise ValidationError(
                "The embedded AWS does not emulate enhanced metrics of an asynchronous endpoint: "
                "AWS documents them for real-time endpoints only."
            )
        return cls(is_enhanced, seconds)
