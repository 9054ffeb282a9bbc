"""Rules about how an update moves the traffic, and what undoes it."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.config.sections.alarms import ALARM_KINDS
from slipway.errors import Problem
from slipway.planning.component import SCALE_TO_ZERO
from slipway.planning.deployment import Deployment, problem
from slipway.planning.placements import variants_of
from slipway.planning.rollout import ALL_AT_ONCE, CANARY, LINEAR, ROLLING, fleet_bounds

_SMALLEST_GUARDED_FLEET = 2
_MOST_ROLLBACK_ALARMS = 10  # botocore's maximum of AutoRollbackConfig.Alarms
_MINUTE_SECONDS = 60
_LEAST_PERCENT = {CANARY: 1, LINEAR: 10, ROLLING: 5}
_STEPS = ("step_percent", "step_count")
_ON_THE_WAY_BACK = ("rollback_step_percent", "rollback_step_count")


def rollout_has_guardrails(deployment: Deployment) -> Iterator[Problem]:
    """Refuses strategies where SageMaker would fall back to all at once without a warning.

    https://docs.aws.amazon.com/sagemaker/latest/dg/deployment-guardrails-exclusions.html, read
    2026-11-24: inf1 has no guardrails, and an endpoint with several variants no rolling deployment.
    Before 2023 the page excluded several variants from canary and linear deployments too.
    """
    config = deployment.config
    rollout = config.rollout
    if rollout.strategy == ALL_AT_ONCE:
        return
    if any(item.name.startswith("ml.inf1.") for item in deployment.instances):
        which, remedy = "inf1 fleets", "Remove `rollout`."
    elif config.endpoint.variants and rollout.strategy == ROLLING:
        which, remedy = "several variants", "Remove `variants`, or set `strategy: linear`."
    else:
        return
    message = f"SageMaker moves {which} all at once; there is no `{rollout.strategy}` there"
    yield problem(Code.ROLLOUT_STRATEGY, message, remedy, ("rollout", "strategy"))


def rollout_has_capacity(deployment: Deployment) -> Iterator[Problem]:
    """A share of a fleet needs a fleet: two instances at least (facts: hosting, rule 14)."""
    config = deployment.config
    rollout = config.rollout
    # A component is updated copy by copy.
    if rollout.strategy == ALL_AT_ONCE or config.endpoint.mode == SCALE_TO_ZERO:
        return
    scaling = config.autoscaling
    if scaling is not None:
        # An update keeps the size that autoscaling gave the fleet.
        if scaling.min_instance_count < _SMALLEST_GUARDED_FLEET:
            yield problem(
                Code.ROLLOUT_STRATEGY,
                f"`{rollout.strategy}` needs 2 instances at least; autoscaling may leave "
                f"{scaling.min_instance_count} when the update begins",
                "Set `min_instance_count: 2`, or `strategy: all_at_once`.",
                ("autoscaling", "min_instance_count"),
            )
        return
    for _, name, variant in variants_of(config):
        count = (variant.instance_count if variant else None) or config.endpoint.instance_count
        if count < _SMALLEST_GUARDED_FLEET:
            of_variant = f" in `{name}`" if variant else ""
            yield problem(
                Code.ROLLOUT_STRATEGY,
                f"`{rollout.strategy}` needs 2 instances at least; there is {count}{of_variant}",
                "Use 2 instances or more, or set `strategy: all_at_once`.",
                ("rollout", "strategy"),
            )


def rollout_has_steps(deployment: Deployment) -> Iterator[Problem]:
    """A strategy with steps needs their size, within SageMaker's limits."""
    rollout = deployment.config.rollout
    for name in ("step", "rollback_step"):
        if None not in (getattr(rollout, f"{name}_percent"), getattr(rollout, f"{name}_count")):
            yield problem(
                Code.ROLLOUT_SETTING,
                f"`{name}_percent` and `{name}_count` exclude each other",
                "Keep one of them.",
                ("rollout", f"{name}_count"),
            )
    if rollout.strategy == ALL_AT_ONCE:
        return
    if rollout.step_percent is None and rollout.step_count is None:
        message = f"`{rollout.strategy}` needs the size of a step"
        yield problem(Code.ROLLOUT_SETTING, message, "Add `step_percent`.", ("rollout", "strategy"))
    elif rollout.strategy == LINEAR and (rollout.step_percent or 10) < 10:
        yield problem(
            Code.ROLLOUT_SETTING,
            f"a linear step of {rollout.step_percent} % is too small: SageMaker takes 10 to 50",
            "Use 10 or more.",
            ("rollout", "step_percent"),
        )


def counts_suit_the_fleet(deployment: Deployment) -> Iterator[Problem]:
    """A step in instances or copies has the limits of a share, whatever size the fleet has then.

    Sources, read 2026-11-29: API_RollingUpdatePolicy, API_InferenceComponentRollingUpdatePolicy,
    and, for canary and linear steps,
    https://docs.aws.amazon.com/sagemaker/latest/dg/deployment-guardrails.html
    """
    config, rollout = deployment.config, deployment.config.rollout
    fewest, most = fleet_bounds(config)
    noun = "copies" if config.endpoint.mode == SCALE_TO_ZERO else "instances"
    fleet = f"{fewest} {noun}" if fewest == most else f"{fewest} to {most} {noun}"
    step, least = rollout.step_count, _LEAST_PERCENT.get(rollout.strategy)
    # One copy is the smallest batch, also of a single copy.
    is_smallest = step == 1 and noun == "copies"
    # A fleet of one instance is refused for that.
    too_large = step is not None and 2 * step > max(2, fewest) and not is_smallest
    if least is not None and step is not None and (too_large or 100 * step < least * most):
        message = f"a step of {step} is not {least} to 50 % of {fleet}"
        remedy = "Use another number, or `step_percent`."
        yield problem(Code.ROLLOUT_COUNT, message, remedy, ("rollout", "step_count"))
    back = rollout.rollback_step_count
    if back is not None and back > most:
        yield problem(
            Code.ROLLOUT_COUNT,
            f"a batch of {back} on the way back is more than the {most} {noun} that there may be",
            f"Use {most} or less.",
            ("rollout", "rollback_step_count"),
        )


def settings_have_effect(deployment: Deployment) -> Iterator[Problem]:
    """Refuses fields of `rollout` that nothing reads, and a section without fields."""
    config = deployment.config
    rollout = config.rollout
    if "rollout" in config.model_fields_set and not rollout.is_guarded:
        message = "`rollout` has no field and would have no effect"
        remedy = "Remove it, or set `strategy: all_at_once`, which watches `server_error_rate`."
        yield problem(Code.ROLLOUT_SETTING, message, remedy, ("rollout",))
    if rollout.strategy == ROLLING and "termination_wait_seconds" in rollout.model_fields_set:
        # RollingUpdatePolicy has no such member.
        yield problem(
            Code.ROLLOUT_SETTING,
            "nothing reads `termination_wait_seconds` with `strategy: rolling`: each batch of the "
            "old fleet ends after its step",
            "Remove it, or set `strategy: linear`.",
            ("rollout", "termination_wait_seconds"),
        )
    unread = {} if rollout.strategy == ROLLING else dict.fromkeys(_ON_THE_WAY_BACK, f"`{ROLLING}`")
    if rollout.strategy == ALL_AT_ONCE:
        unread |= dict.fromkeys(_STEPS, "a strategy with steps")
    for name, other in unread.items():
        if name in rollout.model_fields_set:
            message = f"nothing reads `{name}` with `strategy: {rollout.strategy}`"
            remedy = f"Remove it, or choose {other}."
            yield problem(Code.ROLLOUT_SETTING, message, remedy, ("rollout", name))
    if rollout.strategy != ALL_AT_ONCE:
        return  # `rollout_has_guardrails` looks at inf1 there
    inf1 = next((i.name for i in deployment.instances if i.name.startswith("ml.inf1.")), None)
    for name in sorted(rollout.model_fields_set - unread.keys()):
        if inf1 is not None:
            message = f"SageMaker updates {inf1} without guards: `{name}` would have no effect"
            remedy = "Remove it."
            yield problem(Code.ROLLOUT_SETTING, message, remedy, ("rollout", name))


def rollout_fits_mode(deployment: Deployment) -> Iterator[Problem]:
    """Guardrails shift traffic between fleets; a component is updated copy by copy.

    Its DeploymentConfig has no other policy than a rolling one, and needs it: botocore's model of
    InferenceComponentDeploymentConfig, 2026-11-25.
    """
    config = deployment.config
    rollout = config.rollout
    if config.endpoint.mode != SCALE_TO_ZERO or not rollout.is_guarded:
        return
    if rollout.strategy != ROLLING:
        guards = f"there is no `{rollout.strategy}`"
        if rollout.strategy == ALL_AT_ONCE:
            guards = "`all_at_once` has no guards"
        yield problem(
            Code.ROLLOUT_STRATEGY,
            f"an inference component is updated copy by copy; {guards} with `mode: scale_to_zero`",
            "Set `strategy: rolling`, or remove `rollout`.",
            ("rollout", "strategy") if "strategy" in rollout.model_fields_set else ("rollout",),
        )


def rollout_ends_in_time(deployment: Deployment) -> Iterator[Problem]:
    """An update that is given less time than it waits would always be undone."""
    rollout = deployment.config.rollout
    if rollout.max_execution_seconds is None:
        return
    _, most = fleet_bounds(deployment.config)
    steps, least = len(rollout.shares_percent(most)), rollout.least_seconds(most)
    if rollout.max_execution_seconds <= least:
        yield problem(
            Code.ROLLOUT_TIME,
            f"the update takes longer than {rollout.max_execution_seconds} s: it waits {steps} x "
            f"{rollout.wait_seconds} s, and {rollout.termination_wait_seconds} s at the end",
            f"Use more than {least} s, or wait less.",
            ("rollout", "max_execution_seconds"),
        )


def alarms_see_each_step(deployment: Deployment) -> Iterator[Problem]:
    """An alarm that needs more minutes than a step is watched cannot see a fault of that step.

    After the last step, such an update ends before the alarm can go off.
    """
    config = deployment.config
    rollout = config.rollout
    if not rollout.is_guarded or not rollout.rollback_alarms:
        return
    minutes = config.alarms.evaluation_periods_minutes
    if rollout.wait_seconds < minutes * _MINUTE_SECONDS:
        yield problem(
            Code.ROLLOUT_WATCH,
            f"the alarms cannot see a fault: they need {minutes} minutes in a row, and each step "
            f"is watched for {rollout.wait_seconds} s",
            f"Set `rollout.wait_seconds: {(minutes + 1) * _MINUTE_SECONDS}`, or fewer "
            "`alarms.evaluation_periods_minutes`.",
            ("rollout", "wait_seconds"),
        )


def rollback_alarms_exist(deployment: Deployment) -> Iterator[Problem]:
    """An update watches alarms of its own endpoint, and those that there are."""
    config = deployment.config
    if not config.rollout.is_guarded:
        return
    if not config.rollout.rollback_alarms and config.rollout.strategy != ALL_AT_ONCE:
        message = f"no alarm would undo a `{config.rollout.strategy}` update"
        remedy = "Name an alarm at least, for example `server_error_rate`."
        yield problem(Code.ROLLBACK_ALARMS, message, remedy, ("rollout", "rollback_alarms"))
    for index, name in enumerate(config.rollout.rollback_alarms):
        kind = ALARM_KINDS[name]
        if config.alarms.threshold(kind) is None:
            yield problem(
                Code.ROLLBACK_ALARMS,
                f"there is no alarm `{name}` to undo an update",
                f"Add `alarms.{kind.field}`, or remove it here.",
                ("rollout", "rollback_alarms", index),
            )


def rollback_alarms_are_few(deployment: Deployment) -> Iterator[Problem]:
    """Each variant has its own alarms, and an update watches ten at most."""
    config = deployment.config
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
            message = f"`{name}` is named twice"
            remedy = "Remove it here."
            yield problem(Code.NAMED_TWICE, message, remedy, ("rollout", "rollback_alarms", index))
