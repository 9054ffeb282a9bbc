"""Rules about how an update moves the traffic, and what undoes it."""

import math
from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.config.sections.alarms import ALARM_KINDS
from slipway.config.sections.rollout import Rollout
from slipway.errors import Problem
from slipway.planning.situation import Situation, problem

_SMALLEST_GUARDED_FLEET = 2
_MOST_ROLLBACK_ALARMS = 10  # botocore's maximum of AutoRollbackConfig.Alarms


def rollout_has_capacity(situation: Situation) -> Iterator[Problem]:
    """A share of a fleet needs a fleet: two instances at least (facts: hosting, rule 14)."""
    config = situation.config
    rollout = config.rollout
    if rollout.strategy == "all_at_once":
        return
    if config.endpoint.variants:
        yield problem(
            Code.ROLLOUT_STRATEGY,
            f"SageMaker moves several variants all at once; there is no `{rollout.strategy}` there",
            "Remove `variants`, or set `strategy: all_at_once`.",
            ("rollout", "strategy"),
        )
    elif any(item.name.startswith("ml.inf1.") for item in situation.instances):
        yield problem(
            Code.ROLLOUT_STRATEGY,
            f"SageMaker moves inf1 fleets all at once; there is no `{rollout.strategy}` there",
            "Set `strategy: all_at_once`.",
            ("rollout", "strategy"),
        )
    elif config.endpoint.instance_count < _SMALLEST_GUARDED_FLEET:
        yield problem(
            Code.ROLLOUT_STRATEGY,
            f"`{rollout.strategy}` needs 2 instances at least; there is "
            f"{config.endpoint.instance_count}",
            "Use 2 instances or more, or set `strategy: all_at_once`.",
            ("rollout", "strategy"),
        )
    if rollout.step_percent is None:
        yield problem(
            Code.ROLLOUT_SETTING,
            f"`{rollout.strategy}` needs the size of a step",
            "Add `step_percent`.",
            ("rollout", "strategy"),
        )
    elif rollout.strategy == "linear" and rollout.step_percent < 10:
        yield problem(
            Code.ROLLOUT_SETTING,
            f"a linear step of {rollout.step_percent} % is too small: SageMaker takes 10 to 50",
            "Use 10 or more.",
            ("rollout", "step_percent"),
        )


def guards_have_effect(situation: Situation) -> Iterator[Problem]:
    """Refuses `rollout` where SageMaker has no deployment guardrails, because it would ignore it.

    https://docs.aws.amazon.com/sagemaker/latest/dg/deployment-guardrails-exclusions.html, read
    2026-11-22: an inf1 endpoint falls back to all at once without a baking period.
    """
    config = situation.config
    rollout = config.rollout
    if rollout.strategy != "all_at_once":
        return  # `rollout_has_capacity` looks at those
    if "step_percent" in rollout.model_fields_set:
        yield problem(
            Code.ROLLOUT_SETTING,
            "nothing reads `step_percent` with `strategy: all_at_once`",
            "Remove it, or choose a strategy with steps.",
            ("rollout", "step_percent"),
        )
    inf1 = next((i.name for i in situation.instances if i.name.startswith("ml.inf1.")), None)
    for name in sorted(rollout.model_fields_set - {"strategy", "step_percent"}):
        if inf1 is not None:
            yield problem(
                Code.ROLLOUT_SETTING,
                f"SageMaker updates {inf1} without guards: `{name}` would have no effect",
                "Remove it.",
                ("rollout", name),
            )


def rollout_fits_mode(situation: Situation) -> Iterator[Problem]:
    """Guardrails shift traffic between fleets; a component is updated copy by copy."""
    config = situation.config
    if config.endpoint.mode == "scale_to_zero" and config.rollout.strategy in ("canary", "linear"):
        yield problem(
            Code.ROLLOUT_STRATEGY,
            f"an inference component is updated copy by copy; there is no "
            f"`{config.rollout.strategy}` with `mode: scale_to_zero`",
            "Set `strategy: rolling`, or `strategy: all_at_once`.",
            ("rollout", "strategy"),
        )


def rollout_ends_in_time(situation: Situation) -> Iterator[Problem]:
    """An update that is given less time than it waits would always be undone."""
    rollout = situation.config.rollout
    if rollout.max_execution_seconds is None:
        return
    waits = _waits(rollout)
    least = waits * rollout.wait_seconds + rollout.termination_wait_seconds
    if rollout.max_execution_seconds <= least:
        yield problem(
            Code.ROLLOUT_TIME,
            f"the update takes longer than {rollout.max_execution_seconds} s: it waits "
            f"{waits} x {rollout.wait_seconds} s, and {rollout.termination_wait_seconds} s at the "
            "end",
            f"Use more than {least} s, or wait less.",
            ("rollout", "max_execution_seconds"),
        )


def _waits(rollout: Rollout) -> int:
    """Returns how often the rollout waits between two steps."""
    if rollout.strategy in ("all_at_once", "canary") or rollout.step_percent is None:
        return 1
    return math.ceil(100 / rollout.step_percent) - 1


def rollback_alarms_exist(situation: Situation) -> Iterator[Problem]:
    """An update watches alarms of its own endpoint, and those that there are."""
    config = situation.config
    if not config.rollout.is_guarded:
        return
    if not config.rollout.rollback_alarms and config.rollout.strategy != "all_at_once":
        yield problem(
            Code.ROLLBACK_ALARMS,
            f"no alarm would undo a `{config.rollout.strategy}` update",
            "Name an alarm at least, for example `server_error_rate`.",
            ("rollout", "rollback_alarms"),
        )
    for index, name in enumerate(config.rollout.rollback_alarms):
        kind = ALARM_KINDS[name]
        if config.alarms.threshold(kind) is None:
            yield problem(
                Code.ROLLBACK_ALARMS,
                f"there is no alarm `{name}` to undo an update",
                f"Add `alarms.{kind.field}`, or remove it here.",
                ("rollout", "rollback_alarms", index),
            )


def rollback_alarms_are_few(situation: Situation) -> Iterator[Problem]:
    """Each variant has its own alarms, and an update watches ten at most."""
    config = situation.config
    names, variants = config.rollout.rollback_alarms, max(len(config.endpoint.variants), 1)
    count = len(names) * variants
    if config.rollout.is_guarded and count > _MOST_ROLLBACK_ALARMS:
        yield problem(
            Code.ROLLBACK_ALARMS,
            f"{len(names)} alarms of {variants} variants are {count}; an update watches "
            f"{_MOST_ROLLBACK_ALARMS} at most",
            f"Name {_MOST_ROLLBACK_ALARMS // variants} at most.",
            ("rollout", "rollback_alarms"),
        )
    for index, name in enumerate(names):
        if name in names[:index]:
            yield problem(
                Code.NAMED_TWICE,
                f"`{name}` is named twice",
                "Remove it here.",
                ("rollout", "rollback_alarms", index),
            )


RULES = (
    rollout_has_capacity,
    guards_have_effect,
    rollout_fits_mode,
    rollout_ends_in_time,
    rollback_alarms_exist,
    rollback_alarms_are_few,
)
