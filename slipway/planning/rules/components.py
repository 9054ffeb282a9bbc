"""Rules about scaling to zero: an inference component on instances that come and go with it."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.planning.situation import Situation, problem

_MIB_PER_GIB = 1024


def component_is_alone(situation: Situation) -> Iterator[Problem]:
    """Refuses variants and a shadow beside an inference component, which takes the requests."""
    endpoint = situation.config.endpoint
    if endpoint.mode != "scale_to_zero":
        return
    for name in ("variants", "shadow"):
        if getattr(endpoint, name):
            yield problem(
                Code.COMPONENT_EXCLUDES,
                f"`{name}` and `mode: scale_to_zero` exclude each other: copies of an inference "
                "component take the requests",
                f"Remove `{name}`, or set `mode: realtime`.",
                ("endpoint", name),
            )


def component_fits_instance(situation: Situation) -> Iterator[Problem]:
    """A copy that no instance has room for is never placed."""
    component = situation.config.endpoint.scale_to_zero
    if component is None:
        return
    for instance in situation.instances:
        accelerators = instance.accelerator.count if instance.accelerator else 0
        memory_mib = None if instance.memory_gib is None else instance.memory_gib * _MIB_PER_GIB
        wanted = [
            ("copy_memory_mib", component.copy_memory_mib, memory_mib, "MiB of memory"),
            ("vcpus_per_copy", component.vcpus_per_copy, instance.vcpus, "virtual processors"),
            (
                "accelerators_per_copy",
                component.accelerators_per_copy,
                accelerators if instance.accelerator_known else None,
                "accelerators",
            ),
        ]
        for field, amount, available, unit in wanted:
            if amount is not None and available is not None and amount > available:
                yield problem(
                    Code.COMPONENT_TOO_LARGE,
                    f"a copy needs {amount:g} {unit}; {instance.name} has {available:g}",
                    "Lower it, or choose a larger instance type.",
                    ("endpoint", "scale_to_zero", field),
                )


RULES = (component_is_alone, component_fits_instance)
