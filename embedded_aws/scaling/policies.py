"""What a scaling policy makes of a metric's value. Pure functions: no clock, no back end.

Sources, read 2026-11-24:

- https://docs.aws.amazon.com/autoscaling/application/userguide/step-scaling-policy-overview.html
- https://docs.aws.amazon.com/autoscaling/application/userguide/target-tracking-scaling-policy-overview.html
"""

import math
from collections.abc import Mapping
from typing import Any

_Configuration = Mapping[str, Any]


def stepped(configuration: _Configuration, current: int, value: float, threshold: float) -> int:
    """Returns the capacity after a step policy, whose bounds count from the alarm's threshold."""
    distance = value - threshold
    for step in configuration.get("StepAdjustments", ()):
        low = step.get("MetricIntervalLowerBound", -math.inf)
        high = step.get("MetricIntervalUpperBound", math.inf)
        # Above the threshold the lower bound belongs to a step, and below it the upper bound.
        is_inside = low <= distance < high if distance >= 0 else low < distance <= high
        if is_inside:
            return _adjusted(configuration, current, step["ScalingAdjustment"])
    return current


def _adjusted(configuration: _Configuration, current: int, adjustment: int) -> int:
    kind = configuration.get("AdjustmentType", "ChangeInCapacity")
    if kind == "ExactCapacity":
        return adjustment
    if kind == "ChangeInCapacity":
        return max(current + adjustment, 0)
    change = current * adjustment / 100
    # Values above 1 are rounded down, and values between 0 and 1 are 1, in both directions.
    size = max(math.floor(abs(change)), 1) if change else 0
    size = max(size, int(configuration.get("MinAdjustmentMagnitude", 0)))
    return max(current + (size if adjustment > 0 else -size), 0)


def tracked(configuration: _Configuration, current: int, value: float) -> int:
    """Returns the capacity at which a metric of each instance would be at its target.

    AWS does not publish its formula. Its guide says that it rounds up, so that capacity is added
    generously and removed carefully. Without instances, `value` is the metric's whole value.
    """
    exact = max(current, 1) * value / float(configuration["TargetValue"])
    # The small term corrects floats: 3 x 0.2 / 0.1 is 6, not 6.000000000000001.
    return math.ceil(exact - 1e-9)
