"""Which metrics SageMaker publishes of an endpoint."""

from typing import Any

from slipway.config.sections.endpoint import Metrics
from slipway.deployed.answers import Answer
from slipway.deployed.fields import METRICS
from slipway.importing.endpoint.findings import Findings

_FREQUENCY = "publish_frequency_seconds"
_PERIOD_SECONDS = 60
_OF_QUEUE = "AWS documents it for real-time endpoints only."


def metrics_section(config: Answer, found: Findings, *, is_async: bool) -> dict[str, Any] | None:
    """Returns the section `endpoint.metrics`; None where AWS's defaults apply."""
    raw = config.take("MetricsConfig")
    if raw is None:
        return None
    answer, defaults = Answer(raw), Metrics.model_validate({}).model_dump()
    told = answer.fields(METRICS)
    section = {name: value for name, value in told.items() if value != defaults[name]}
    found.leave_out_rest(answer, "MetricsConfig.")
    if is_async:
        for field, value in section.items():
            found.leave_out(f"MetricsConfig.{METRICS[field][0]}", value, _OF_QUEUE)
        return None
    seconds = section.get(_FREQUENCY, _PERIOD_SECONDS)
    if section.get("enhanced") and seconds > _PERIOD_SECONDS:
        del section[_FREQUENCY]
        found.change(
            f"MetricsConfig.{METRICS[_FREQUENCY][0]}",
            seconds,
            f"{_PERIOD_SECONDS} now, because alarms read the metrics every minute.",
        )
    return section or None
