"""Rules about the larger steps of autoscaling."""

from collections.abc import Iterator
from itertools import pairwise

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.planning.deployment import Deployment, problem


def steps_ascend(deployment: Deployment) -> Iterator[Problem]:
    """A fleet that is further above its target needs more instances."""
    scaling = deployment.config.autoscaling
    steps = scaling.steps if scaling else ()
    for index, (lower, upper) in enumerate(pairwise(steps), 1):
        place = ("autoscaling", "steps", index)
        if upper.from_times_target <= lower.from_times_target:
            yield problem(
                Code.SCALING_STEPS,
                f"the step from {upper.from_times_target:g} times the target follows one from "
                f"{lower.from_times_target:g}",
                "Sort the steps by `from_times_target`, and use each value once.",
                (*place, "from_times_target"),
            )
        elif upper.add_instances <= lower.add_instances:
            yield problem(
                Code.SCALING_STEPS,
                f"from {upper.from_times_target:g} times the target it adds "
                f"{upper.add_instances}, and below that {lower.add_instances}",
                "Let each step add more than the step before it, or remove it.",
                (*place, "add_instances"),
            )


def steps_fit_the_range(deployment: Deployment) -> Iterator[Problem]:
    """Application Auto Scaling adds no instances beyond the maximum."""
    scaling = deployment.config.autoscaling
    if scaling is None:
        return
    room = scaling.largest_count - scaling.smallest_count
    for index, step in enumerate(scaling.steps):
        if step.add_instances > room >= 0:
            yield problem(
                Code.SCALING_STEPS,
                f"it adds {step.add_instances}, and the fleet can never grow by more than {room}",
                "Add fewer instances, or raise `max_instance_count`.",
                ("autoscaling", "steps", index, "add_instances"),
            )
