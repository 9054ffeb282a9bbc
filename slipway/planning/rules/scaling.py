"""What holds of every scaling: of instances, of copies, and of the schedules of both."""

from collections.abc import Iterator, Sequence

from slipway.codes.code import Code
from slipway.config.sections.base import Section
from slipway.errors import FieldPath, Problem
from slipway.planning.deployment import problem


def targets_are_one(
    section: Section, targets: Sequence[str], place: FieldPath, what: str, remedy: str
) -> Iterator[Problem]:
    """Two targets would pull in two directions; none would leave everything as it is."""
    given = [name for name in targets if getattr(section, name) is not None]
    if len(given) > 1:
        message = f"there are {len(given)} targets: {', '.join(given)}"
        yield problem(Code.SCALING_TARGETS, message, "Keep one of them.", (*place, given[1]))
    elif not given:
        yield problem(Code.SCALING_TARGETS, f"there is no target to {what} by", remedy, place)


def bounds_ascend(section: Section, least: str, most: str, place: FieldPath) -> Iterator[Problem]:
    """Yields the problem of a minimum that is above its maximum."""
    low, high = getattr(section, least), getattr(section, most)
    if low > high:
        message = f"the minimum, {low}, is above the maximum, {high}"
        remedy = f"Raise `{most}` or lower `{least}`."
        yield problem(Code.SCALING_RANGE, message, remedy, (*place, least))


def realtime_from_zero(field: FieldPath) -> Problem:
    """Returns the problem of a realtime endpoint without instances."""
    return problem(
        Code.SCALING_OF_MODE,
        "a realtime endpoint keeps one instance at least",
        "Use 1 or more; `mode: async` and `mode: scale_to_zero` can go to 0.",
        field,
    )
