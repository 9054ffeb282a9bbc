"""Rules about schedules, and about the alarm of a fleet that cannot grow."""

from collections.abc import Iterator, Sequence

from slipway.codes.code import Code
from slipway.config.sections.scale_to_zero import CopySchedule
from slipway.config.sections.scaling import Schedule
from slipway.errors import FieldPath, Problem
from slipway.facts.schedule_expressions import ScheduleError, parse_schedule, zone_of
from slipway.planning.component import SCALE_TO_ZERO
from slipway.planning.deployment import Deployment, problem
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
            yield problem(
                Code.NAMED_TWICE,
                f"there are two schedules {schedule.name!r}",
                "Give each schedule its own name.",
                (*place, "name"),
            )
        seen.add(key)


def schedules_have_times(deployment: Deployment) -> Iterator[Problem]:
    """Application Auto Scaling refuses other expressions and time zones while the stack deploys."""
    for place, schedule in _schedules(deployment):
        try:
            zone_of(schedule.time_zone)
        except ScheduleError as error:
            yield problem(
                Code.TIME_ZONE,
                str(error),
                "Use a name of the IANA time zone database, such as `Europe/Zurich`.",
                (*place, "time_zone"),
            )
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
            yield problem(
                Code.SCHEDULE,
                "a rate is the same in every time zone: `time_zone` would have no effect",
                "Remove it, or write the times as `cron(...)`.",
                (*place, "time_zone"),
            )


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
    field = ("alarms", "at_max_capacity")
    if config.endpoint.mode == SCALE_TO_ZERO:
        copies = config.endpoint.scale_to_zero
        if copies is not None and copies.largest_count == max(1, copies.smallest_count):
            text = (
                f"there are always {copies.largest_count} copies, so this alarm would never end"
                if copies.smallest_count
                else "there is one copy at most, so every wake would raise this alarm"
            )
            yield problem(
                Code.CAPACITY_ALARM,
                text,
                "Raise `max_copies`, or remove this alarm.",
                field,
            )
    elif scaling is None:
        yield problem(
            Code.CAPACITY_ALARM,
            "without `autoscaling` the fleet has no maximum",
            "Add `autoscaling`, or remove this alarm.",
            field,
        )
    elif scaling.largest_count == scaling.smallest_count:
        yield problem(
            Code.CAPACITY_ALARM,
            f"the fleet always has {scaling.largest_count}, so this alarm would never end",
            "Raise `max_instance_count`, or remove this alarm.",
            field,
        )
