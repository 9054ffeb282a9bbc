"""Kept measurements of a plan, to test with."""

from typing import Any

from slipway.planning.plan import DeploymentPlan
from slipway.sizing.measured import Measurement, image_name, settings_digest


def load(concurrency: float, seconds: float, **changed: Any) -> dict[str, Any]:
    """Returns a load of a closed loop whose requests take so many seconds."""
    rate = concurrency / seconds
    return {
        "concurrency": concurrency,
        "input_tokens": 256,
        "output_tokens": 64,
        "requests_per_second": rate,
        "least_requests_per_second": rate * 0.98,
        "most_requests_per_second": rate * 1.02,
        "average_milliseconds": 1000 * seconds,
        "deviation_milliseconds": 250 * seconds,
        "p99_milliseconds": 2000 * seconds,
    } | changed


def measurement_of(plan: DeploymentPlan, *loads: dict[str, Any], **changed: Any) -> Measurement:
    content = {
        "measured_on": "2026-11-28",
        "environment": plan.environment.name,
        "instance_type": plan.variants[0].instance_type,
        "instance_count": 1,
        "container": plan.config.serving.container,
        "image": image_name(plan.image.uri),
        "artifact": plan.artifact.digest,
        "settings": settings_digest(plan.container_environment),
        "design": "text-generation",
        "trials": 5,
        "loads": loads,
    }
    return Measurement.model_validate(content | changed)
