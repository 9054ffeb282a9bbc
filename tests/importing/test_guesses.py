"""What the import takes from the steps of a policy, and from names where nothing else says it."""

from typing import Any

import pytest

from slipway.deployed.scaling import STEPS, step_loads
from slipway.importing.endpoint.steps import steps_of, wakes
from slipway.importing.networks import family_of, parameters_of

ARN = "arn:aws:autoscaling:us-east-1:123456789012:scalingPolicy:1:policyName/burst"
LOAD = {"target_invocations_per_instance_per_minute": 600, "scale_out_cooldown_seconds": 60}
LOWER = {
    "MetricIntervalLowerBound": 0.0, "MetricIntervalUpperBound": 900.0, "ScalingAdjustment": 1,
}  # fmt: skip
LOWER_BOUND = {"MetricIntervalLowerBound": 0.0}
UPPER = {"MetricIntervalLowerBound": 900.0, "ScalingAdjustment": 4}


def policy(**changes: Any) -> dict[str, Any]:
    configuration = {
        "AdjustmentType": "ChangeInCapacity",
        "Cooldown": 60,
        "MetricAggregationType": "Maximum",
        "StepAdjustments": [LOWER, UPPER],
        **changes,
    }
    return {"PolicyARN": ARN, "StepScalingPolicyConfiguration": configuration}


def alarm(**changes: Any) -> dict[str, Any]:
    return {
        "AlarmActions": [ARN],
        "MetricName": "InvocationsPerInstance",
        "Threshold": 1200.0,
        "EvaluationPeriods": 1,
        "Period": 60,
        **changes,
    }


def test_bounds_become_multiples_of_the_target():
    assert steps_of(policy(), [alarm()], LOAD, 1) == [
        {"from_times_target": 2, "add_instances": 1},
        {"from_times_target": 3.5, "add_instances": 4},
    ]


def test_the_use_of_gpus_adds_up():
    load = {"target_gpu_utilization_percent": 20, "scale_out_cooldown_seconds": 60}
    gpus = alarm(MetricName="GPUUtilization", Threshold=160.0)
    found = steps_of(policy(StepAdjustments=[UPPER | LOWER_BOUND]), [gpus], load, 4)
    assert found == [{"from_times_target": 2, "add_instances": 4}]


@pytest.mark.parametrize(
    ("policy_changes", "alarm_changes"),
    [
        ({"AdjustmentType": "PercentChangeInCapacity"}, {}),
        ({"Cooldown": 300}, {}),
        ({"MinAdjustmentMagnitude": 2}, {}),
        ({"StepAdjustments": []}, {}),
        ({"StepAdjustments": [LOWER]}, {}),
        ({"StepAdjustments": [LOWER, UPPER | {"MetricIntervalLowerBound": 950.0}]}, {}),
        ({"StepAdjustments": [UPPER | LOWER_BOUND | {"ScalingAdjustment": -1}]}, {}),
        ({}, {"MetricName": "CPUUtilization"}),
        ({}, {"Threshold": 600.0}),
        ({}, {"EvaluationPeriods": 3}),
        ({}, {"Period": 300}),
        ({}, {"AlarmActions": []}),
    ],
)
def test_other_steps_are_not_said(policy_changes, alarm_changes):
    assert steps_of(policy(**policy_changes), [alarm(**alarm_changes)], LOAD, 1) is None


def test_without_a_target_there_are_no_steps():
    assert steps_of(policy(), [alarm()], {}, 1) is None


def test_slipways_wake_policy_needs_a_fleet_that_may_be_empty():
    waking = policy(StepAdjustments=[UPPER | LOWER_BOUND | {"ScalingAdjustment": 1}])
    alarms = [alarm(MetricName="HasBacklogWithoutCapacity", Threshold=1.0)]
    assert wakes(waking, alarms, 0)
    assert not wakes(waking, alarms, 1)
    assert not wakes(policy(), alarms, 0)
    assert not wakes(waking, [alarm()], 0)


def test_a_step_without_a_lower_bound_begins_at_the_threshold():
    steps = [
        {"ScalingAdjustment": 1, "MetricIntervalUpperBound": 50.0},
        {"ScalingAdjustment": 3, "MetricIntervalLowerBound": 50.0},
    ]
    policy = {STEPS: {"StepAdjustments": steps}}
    assert step_loads(policy, {"Threshold": 100.0}) == [(1, 100.0), (3, 150.0)]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("llama-2-13b", 13 * 10**9),
        ("opt-350m", 350 * 10**6),
        ("mixtral-8x7b", 56 * 10**9),
        ("Qwen/Qwen2.5-0.5B-Instruct", 500_000_000),
        ("llama-2-4bit", None),
        ("ranker", None),
    ],
)
def test_a_name_says_the_number_of_weights(name, parameters):
    assert parameters_of(name) == parameters


@pytest.mark.parametrize(
    ("name", "family"), [("Llama-2-13b", "llama"), ("mixtral-8x7b", None), ("ranker", None)]
)
def test_a_name_says_the_family(name, family):
    assert family_of(name) == family
