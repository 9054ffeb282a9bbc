"""Rules about autoscaling: schedules, larger steps, the use of GPUs, and a fleet that cannot grow.

The metric of GPUs adds up over an instance's GPUs, and has no dimension that names the type:
https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch.html, read 2026-11-22.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from slipway.codes.code import Code
from slipway.config.sections.endpoint import SHADOW_VARIANT_NAME
from slipway.config.sections.scale_to_zero import CopySchedule
from slipway.config.sections.scaling import Schedule
from slipway.errors import FieldPath, Problem
from slipway.facts.instances import InstanceFacts
from slipway.facts.schedule_expressions import ScheduleError, parse_schedule, zone_of
from slipway.planning.component import SCALE_TO_ZERO
from slipway.planning.deployment import Deployment, problem
from slipway.planning.memory_estimate import counted
from slipway.planning.rules.scaling import bounds_ascend, realtime_from_zero

_INSTANCES = ("min_instance_count", "max_instance_count")
_COPIES = ("min_copies", "max_copies")


def _schedules(deployment: Deployment) -> list[tuple[FieldPath, Schedule | CopySchedule]]:
    """Returns the schedules of instances or of copies, each with its place in the config."""
    config = deployment.config
    scaling, copies = config.autoscaling, config.endpoint.scale_to_zero
    lists: dict[FieldPath, Sequence[Schedule | CopySchedule]] = {
        ("autoscaling", "schedules"): scaling.schedules if scaling else (),
        ("endpoint", "scale_to_zero", "schedules"): copies.schedules if copies else (),
    }
    return [((*at, index), each) for at, every in lists.items() for index, each in enumerate(every)]


def schedules_are_told_apart(deployment: Deployment) -> Iterator[Problem]:
    """A scalable target has its scheduled actions by name."""
    seen: set[tuple[FieldPath, str]] = set()
    for place, schedule in _schedules(deployment):
        key = (place[:-1], schedule.name)
        if key in seen:
            message = f"there are two schedules {schedule.name!r}"
            remedy = "Give each schedule its own name."
            yield problem(Code.NAMED_TWICE, message, remedy, (*place, "name"))
        seen.add(key)


def schedules_have_times(deployment: Deployment) -> Iterator[Problem]:
    """Application Auto Scaling refuses other expressions and time zones while the stack deploys."""
    for place, schedule in _schedules(deployment):
        try:
            zone_of(schedule.time_zone)
        except ScheduleError as error:
            message = str(error)
            remedy = "Use a name of the IANA time zone database, such as `Europe/Zurich`."
            yield problem(Code.TIME_ZONE, message, remedy, (*place, "time_zone"))
        try:
            parse_schedule(schedule.at)
        except ScheduleError as error:
            yield problem(
                Code.SCHEDULE,
                str(error),
                "Write it as `cron(0 7 ? * MON-FRI *)`, `rate(1 day)` or "
                "`at(2027-01-31T07:00:00)`.",
                (*place, "at"),
            )
        if schedule.at.startswith("rate(") and "time_zone" in schedule.model_fields_set:
            message = "a rate is the same in every time zone: `time_zone` would have no effect"
            remedy = "Remove it, or write the times as `cron(...)`."
            yield problem(Code.SCHEDULE, message, remedy, (*place, "time_zone"))


def schedules_have_bounds(deployment: Deployment) -> Iterator[Problem]:
    """A schedule's bounds follow the same rules as the bounds that it changes."""
    mode = deployment.config.endpoint.mode
    for place, schedule in _schedules(deployment):
        least, most = _COPIES if isinstance(schedule, CopySchedule) else _INSTANCES
        yield from bounds_ascend(schedule, least, most, place)
        if mode == "realtime" and least == _INSTANCES[0] and getattr(schedule, least) == 0:
            yield realtime_from_zero((*place, least))


def capacity_alarm_can_end(deployment: Deployment) -> Iterator[Problem]:
    """A fleet that cannot grow is always at its maximum."""
    config, scaling = deployment.config, deployment.config.autoscaling
    if not config.alarms.at_max_capacity:
        return
    if config.endpoint.mode == SCALE_TO_ZERO:
        copies = config.endpoint.scale_to_zero
        if copies is None or copies.largest_count != max(1, copies.smallest_count):
            return
        message = "there is one copy at most, so every wake would raise this alarm"
        if copies.smallest_count:
            most = copies.largest_count
            message = f"there are always {most} copies, so this alarm would never end"
        way = "Raise `max_copies`"
    elif scaling is None:
        message, way = "without `autoscaling` the fleet has no maximum", "Add `autoscaling`"
    elif scaling.largest_count == scaling.smallest_count:
        most = scaling.largest_count
        message = f"the fleet always has {most}, so this alarm would never end"
        way = "Raise `max_instance_count`"
    else:
        return
    remedy = f"{way}, or remove this alarm."
    yield problem(Code.CAPACITY_ALARM, message, remedy, ("alarms", "at_max_capacity"))


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


_FIELD = ("autoscaling", "target_gpu_utilization_percent")
_BY_REQUESTS = "Scale by `target_concurrent_requests_per_instance`"


def gpu_target_needs_gpus(deployment: Deployment) -> Iterator[Problem]:
    """A type without a GPU has no such metric, so its fleet would never grow."""
    if _target(deployment) is None:
        return
    preferred: dict[str, InstanceFacts] = {}
    for placement in deployment.every_placement:
        # A shadow variant has a fixed count.
        if placement.variant == SHADOW_VARIANT_NAME:
            continue
        instance = placement.instance
        first = preferred.setdefault(placement.variant, instance)
        if not instance.gpu_count:
            reason = "has no GPU" if instance.accelerator_known else "has an unknown number of GPUs"
            message = f"{instance.name} {reason}, and autoscaling would follow the use of its GPUs"
            remedy = f"{_BY_REQUESTS}, or use types with GPUs."
            yield problem(Code.SCALING_GPU, message, remedy, _FIELD)
        elif first.gpu_count and instance.gpu_count != first.gpu_count:
            yield problem(
                Code.SCALING_GPU,
                f"{instance.name} has {counted(instance.gpu_count, 'GPU')} and {first.name} has "
                f"{counted(first.gpu_count, 'GPU')}; the metric `GPUUtilization` adds up over the "
                "GPUs of an instance, so no one target is right for both",
                f"{_BY_REQUESTS}, or use types with the same number of GPUs.",
                placement.field,
            )


def gpu_steps_can_be_reached(deployment: Deployment) -> Iterator[Problem]:
    """GPUs that are busy all the time are at 100 %."""
    scaling, target = deployment.config.autoscaling, _target(deployment)
    if scaling is None or target is None:
        return
    for index, step in enumerate(scaling.steps):
        value = step.from_times_target * target
        if value > 100:
            yield problem(
                Code.SCALING_STEPS,
                f"the step begins at {value:g} % use of the GPUs, which is never reached",
                f"Use {math.floor(10_000 / target) / 100:g} times the target at most, or lower the "
                "target.",
                ("autoscaling", "steps", index, "from_times_target"),
            )


def _target(deployment: Deployment) -> float | None:
    scaling = deployment.config.autoscaling
    return scaling.target_gpu_utilization_percent if scaling else None
