"""Which metrics are published: as the files say it, and as an endpoint configuration does."""

from slipway.config.sections.endpoint import Metrics
from slipway.operations.metrics_differences import deployed_metrics, planned_metrics

DEFAULTS = {
    "endpoint.metrics.enhanced": False,
    "endpoint.metrics.publish_frequency_seconds": 60,
    "endpoint.metrics.detailed_observability": True,
}


def test_without_a_section_the_defaults_of_aws_are_meant():
    assert planned_metrics(None) == DEFAULTS
    assert deployed_metrics({}) == DEFAULTS
    # AWS describes the default of a new configuration.
    assert deployed_metrics({"MetricsConfig": {"EnableDetailedObservability": True}}) == DEFAULTS


def test_every_setting_is_compared():
    metrics = Metrics(enhanced=True, publish_frequency_seconds=10, detailed_observability=False)
    config = {
        "MetricsConfig": {
            "EnableEnhancedMetrics": True,
            "MetricPublishFrequencyInSeconds": 10,
            "EnableDetailedObservability": False,
        }
    }
    assert planned_metrics(metrics) == deployed_metrics(config)
    assert set(planned_metrics(metrics).items()).isdisjoint(DEFAULTS.items())
