"""Warnings about LMI containers for a reviewer (facts: lmi). They stop nothing."""

from collections.abc import Iterator

from slipway.errors import did_you_mean
from slipway.planning.families.lmi.deployment import Lmi
from slipway.planning.families.lmi.setup import LmiSetup, rendered
from slipway.planning.plan import PlanWarning


def idle_accelerators(lmi: Lmi) -> Iterator[PlanWarning]:
    """Warns of accelerators that stay unused: the server starts only as many copies as fit."""
    setup = lmi.setup
    if not setup.runs_python:
        return
    for instance in lmi.instances:
        count, each = setup.devices(instance.accelerator), setup.devices_per_copy
        if count is None or each > count:
            continue
        option = _one_worker_option(setup)
        copies = 1 if option else count // each
        idle = count - copies * each
        if idle:
            number = "1 copy" if copies == 1 else f"{copies} copies"
            because = f", all that `{option}` allows," if option else ""
            yield PlanWarning(
                "lmi-accelerators-idle",
                f"{instance.name} has {count} {setup.device_name}: {number} of the model"
                f"{because} with {each} each {'leaves' if copies == 1 else 'leave'} {idle} idle.",
            )


def _one_worker_option(setup: LmiSetup) -> str | None:
    given = setup.serving.options
    return next(
        (
            name
            for name in setup.version.one_worker_options
            if name in setup.options and rendered(given.get(name, False)).lower() == "true"
        ),
        None,
    )


def family_is_not_at_home(lmi: Lmi) -> Iterator[PlanWarning]:
    """Warns of a model for which DJL Serving would take another engine, or has no fast kernels."""
    setup, family = lmi.setup, lmi.model_type
    if family is None:
        return
    named = lmi.config.model.family
    rows = [row for row in setup.version.model_families if row.handler == setup.handler]
    detected = [name for row in rows if row.purpose == "detected" for name in row.model_types]
    if detected and family not in detected:
        yield PlanWarning(
            "lmi-family-not-detected",
            f"{setup.reader} is not what DJL Serving would choose for the family {named}: it takes "
            f"it for {', '.join(detected)}. Try the model before you rely on it.",
        )
    for row in rows:
        slow = row.purpose == "kernels" and row.otherwise == "loaded without fast kernels"
        if slow and family not in row.model_types:
            yield PlanWarning(
                "lmi-family-without-kernels",
                f"{setup.reader} has no fast kernels for the family {named}; it has for "
                f"{', '.join(row.model_types)}.",
            )


def outdated_options(lmi: Lmi) -> Iterator[PlanWarning]:
    """Warns of options that a later version no longer reads."""
    setup = lmi.setup
    for key in setup.serving.options:
        facts = setup.options.get(key)
        if facts is not None and facts.status == "deprecated":
            hint = f": {facts.note}" if facts.note else ""
            yield PlanWarning(
                "lmi-option-deprecated", f"`{key}` is deprecated in {setup.image}{hint}."
            )


def unchecked_options(lmi: Lmi) -> Iterator[PlanWarning]:
    """Warns of a handler that passes every key on, since no table finds a misspelt key.

    (facts: lmi)
    """
    setup = lmi.setup
    if not setup.is_settled or not setup.is_open:
        return
    for key in setup.serving.options:
        if key in setup.every_option or key in setup.version.server_keys:
            continue
        hint = f" {did_you_mean(key, setup.options)}".rstrip()
        yield PlanWarning(
            "lmi-option-unchecked",
            f"`{key}` is on no list of options: {setup.reader} passes it on, and where nothing "
            f"reads it, the server ignores it without a warning.{hint}",
        )


def rolling_batches_fail_together(lmi: Lmi) -> Iterator[PlanWarning]:
    """Warns of rolling batches whose requests fail together, where the image has a better way."""
    setup = lmi.setup
    if setup.rolling_batch != "vllm":
        return
    for defect in setup.version.defects:
        if defect.name == "rolling_batch_fails_together" and defect.handler == setup.handler:
            yield PlanWarning(
                "lmi-rolling-batch-fails-together",
                f"`rolling_batch: vllm` has {setup.entry_point} drive vLLM: {defect.effect}. "
                "Leave it and `entry_point` out: the image's own handler for vLLM does not.",
            )
