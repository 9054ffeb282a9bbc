"""Autoscaling by the use of the GPUs: refusals word for word, and configs that pass."""

from typing import Any

import pytest

from slipway.planning.rules.schedules import gpu_steps_can_be_reached, gpu_target_needs_gpus
from tests.unit.planning.rule_findings import findings, only

SCALING = {
    "min_instance_count": 1,
    "max_instance_count": 4,
    "target_gpu_utilization_percent": 60,
}


def scaled(*instances: str, **over: Any) -> dict[str, Any]:
    return {"endpoint": {"instances": list(instances)}, "autoscaling": SCALING | over}


@pytest.mark.parametrize("instances", [("ml.g4dn.xlarge",), ("ml.g4dn.xlarge", "ml.g5.xlarge")])
def test_types_with_as_many_gpus_are_fine(instances: tuple[str, ...]):
    assert findings(gpu_target_needs_gpus, **scaled(*instances)) == []
    assert findings(gpu_target_needs_gpus, autoscaling=None) == []


def test_gpu_target_needs_gpus():
    assert only(findings(gpu_target_needs_gpus, **scaled("ml.c5.xlarge"))) == (
        "autoscaling.target_gpu_utilization_percent",
        "ml.c5.xlarge has no GPU, and autoscaling would follow the use of its GPUs",
        "Scale by `target_concurrent_requests_per_instance`, or use types with GPUs.",
    )
    requests = {
        "target_gpu_utilization_percent": None,
        "target_concurrent_requests_per_instance": 8,
    }
    assert findings(gpu_target_needs_gpus, **scaled("ml.c5.xlarge", **requests)) == []
    assert only(
        findings(gpu_target_needs_gpus, **scaled("ml.g4dn.xlarge", "ml.g4dn.12xlarge"))
    ) == (
        "endpoint.instances[1]",
        "ml.g4dn.12xlarge has 4 GPUs and ml.g4dn.xlarge has 1 GPU; the metric `GPUUtilization` "
        "adds up over the GPUs of an instance, so no one target is right for both",
        "Scale by `target_concurrent_requests_per_instance`, or use types with the same number "
        "of GPUs.",
    )


def test_a_step_beyond_full_use_is_never_reached():
    steps = [
        {"from_times_target": 1.5, "add_instances": 1},
        {"from_times_target": 2, "add_instances": 2},
    ]
    assert only(findings(gpu_steps_can_be_reached, **scaled("ml.g4dn.xlarge", steps=steps))) == (
        "autoscaling.steps[1].from_times_target",
        "the step begins at 120 % use of the GPUs, which is never reached",
        "Use 1.66 times the target at most, or lower the target.",
    )
