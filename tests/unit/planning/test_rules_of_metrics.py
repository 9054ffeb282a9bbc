"""The metrics that SageMaker publishes: refusals word for word, and configs that pass."""

from typing import Any

import pytest

from slipway.planning.rules import exclusions, surroundings
from tests.unit.planning.rule_findings import all_of, findings, only

QUEUE = {"input": "s3://requests/", "output": "s3://answers/"}
FREQUENCY = "endpoint.metrics.publish_frequency_seconds"


def published(seconds: int = 60, *, enhanced: bool = False, **sections: Any) -> dict[str, Any]:
    section = {"enhanced": enhanced, "publish_frequency_seconds": seconds}
    return {"endpoint": {"metrics": section}, **sections}


@pytest.mark.parametrize("enhanced", [False, True])
@pytest.mark.parametrize("seconds", [10, 30, 60])
def test_a_value_a_minute_is_enough(seconds: int, enhanced: bool) -> None:
    alarms = {"memory_utilization_percent": 80}
    for rule in (
        surroundings.requests_are_counted_each_minute,
        surroundings.machines_are_measured_each_minute,
    ):
        assert findings(rule, **published(seconds, enhanced=enhanced, alarms=alarms)) == []


def test_requests_that_are_counted_every_two_minutes_raise_no_alarm() -> None:
    rule = surroundings.requests_are_counted_each_minute
    assert only(findings(rule, **published(120, enhanced=True))) == (
        FREQUENCY,
        "with `enhanced`, the metrics of requests come every 120 seconds, and alarms read them "
        "every minute",
        "Set `publish_frequency_seconds` to 10, 30 or 60, or `enhanced` to false.",
    )
    assert findings(rule, **published(120)) == []


def test_rare_metrics_of_machines_need_that_nobody_reads_them() -> None:
    rule = surroundings.machines_are_measured_each_minute
    assert findings(rule, **published(300)) == []
    scaling = {
        "min_instance_count": 1,
        "max_instance_count": 4,
        "target_gpu_utilization_percent": 60,
    }
    alarms = {"memory_utilization_percent": 80, "client_error_rate_percent": 5}
    assert findings(rule, **published(300, alarms=alarms, autoscaling=scaling)) == [
        (
            FREQUENCY,
            f"the metrics of machines come every 300 seconds, and `{reader}` reads them every "
            "minute",
            f"Set `publish_frequency_seconds` to 10, 30 or 60, or remove `{reader}`.",
        )
        for reader in (
            "alarms.memory_utilization_percent", "autoscaling.target_gpu_utilization_percent",
        )
    ]  # fmt: skip


def test_a_queue_excludes_the_section() -> None:
    rule = all_of(exclusions.RULES)
    queue = {"mode": "async", "async_inference": QUEUE}
    assert findings(rule, endpoint=queue) == []
    assert only(findings(rule, endpoint={**queue, "metrics": {}})) == (
        "endpoint.metrics",
        "`metrics` and `mode: async` exclude each other: AWS documents these settings for "
        "real-time endpoints only",
        "Remove `metrics`.",
    )
