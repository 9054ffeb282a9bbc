"""What a policy makes of a value: the examples of the user guide, and the edges."""

import pytest

from slipway.embedded_aws.scaling.policies import stepped, tracked

# The user guide's example of Application Auto Scaling: an alarm at 60 %, percent of the capacity.
_OUT = {
    "AdjustmentType": "PercentChangeInCapacity",
    "StepAdjustments": [
        {"MetricIntervalLowerBound": 0, "MetricIntervalUpperBound": 10, "ScalingAdjustment": 0},
        {"MetricIntervalLowerBound": 10, "MetricIntervalUpperBound": 20, "ScalingAdjustment": 10},
        {"MetricIntervalLowerBound": 20, "ScalingAdjustment": 30},
    ],
}
_IN = {
    "AdjustmentType": "PercentChangeInCapacity",
    "StepAdjustments": [
        {"MetricIntervalLowerBound": -10, "MetricIntervalUpperBound": 0, "ScalingAdjustment": 0},
        {
            "MetricIntervalLowerBound": -20,
            "MetricIntervalUpperBound": -10,
            "ScalingAdjustment": -10,
        },
        {"MetricIntervalUpperBound": -20, "ScalingAdjustment": -30},
    ],
}
_WAKE = {"StepAdjustments": [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}]}


@pytest.mark.parametrize(
    ("configuration", "current", "value", "threshold", "expected"),
    [
        (_OUT, 10, 60, 50, 11),
        (_OUT, 10, 59.9, 50, 10),
        (_OUT, 11, 70, 50, 14),
        (_IN, 14, 40, 50, 13),
        (_IN, 13, 29, 50, 10),
        (_WAKE, 0, 1, 1, 1),
        (_WAKE, 3, 1, 1, 4),
        ({"AdjustmentType": "ExactCapacity", **_WAKE}, 7, 1, 1, 1),
        # At least so many, whatever the percentage.
        ({**_OUT, "MinAdjustmentMagnitude": 2}, 10, 60, 50, 12),
        # No step is for this value.
        ({"StepAdjustments": [{"MetricIntervalLowerBound": 5, "ScalingAdjustment": 1}]}, 2, 52, 50,
         2),
    ],
)  # fmt: skip
def test_steps(configuration, current, value, threshold, expected):
    assert stepped(configuration, current, value, threshold) == expected


@pytest.mark.parametrize(
    ("current", "value", "expected"),
    [(2, 900, 3), (2, 601, 3), (2, 600, 2), (4, 500, 4), (4, 300, 2), (4, 0, 0), (0, 1500, 3)],
)
def test_the_target_is_held_at_each_instance(current, value, expected):
    assert tracked({"TargetValue": 600.0}, current, value) == expected
