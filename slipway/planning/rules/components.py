"""Rules about copies that scale to zero, and about a guest: copies on another model's endpoint."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.config.alarm_kinds import MACHINES
from slipway.config.sections.alarms import ALARM_KINDS
from slipway.errors import FieldPath, Problem
from slipway.planning.component import (
    accelerators_of,
    component_plan,
    memory_mib_of,
    share_of_copy,
)
from slipway.planning.deployment import Deployment, problem
from slipway.planning.rules.scaling import bounds_ascend, targets_are_one

_COPY_TARGETS = ("target_concurrent_requests_per_copy", "target_invocations_per_copy_per_minute")
_SECTION = ("endpoint", "scale_to_zero")


def component_has_one_target(deployment: Deployment) -> Iterator[Problem]:
    """Two targets would pull the copies in two directions; none would never scale them in."""
    section = deployment.config.endpoint.scale_to_zero
    if section is None:
        return
    remedy = f"Add `{_COPY_TARGETS[0]}`, or `{_COPY_TARGETS[1]}`."
    yield from targets_are_one(section, _COPY_TARGETS, _SECTION, "scale the copies", remedy)


def copies_are_alike(deployment: Deployment) -> Iterator[Problem]:
    """Refuses a pool on whose types a copy would reserve other shares: one specification holds."""
    section = deployment.config.endpoint.scale_to_zero
    if section is None:
        return
    shares = {each.name: share_of_copy(section, each) for each in deployment.instances}
    for field, noun, index in (
        ("accelerators_per_copy", "accelerators", 0),
        ("vcpus_per_copy", "virtual processors", 1),
    ):
        amounts = {name: share[index] or 0 for name, share in shares.items()}
        if len(set(amounts.values())) > 1:
            told = ", ".join(f"{amount:g} of {name}" for name, amount in amounts.items())
            message = f"without `{field}` a copy gets other numbers of {noun} on each type: {told}"
            remedy = f"Set `{field}` to a number that each type has, or name types that are alike."
            yield problem(Code.COPIES_DIFFER, message, remedy, _SECTION)


def component_fits_instance(deployment: Deployment) -> Iterator[Problem]:
    """A copy that no instance has room for is never placed."""
    component = deployment.config.endpoint.scale_to_zero
    if component is None:
        return
    for instance in deployment.instances:
        accelerators = accelerators_of(instance) if instance.accelerator_known else None
        wanted = [
            ("copy_memory_mib", memory_mib_of(instance), "MiB of memory"),
            ("vcpus_per_copy", instance.vcpus, "virtual processors"),
            ("accelerators_per_copy", accelerators, "accelerators"),
        ]
        for field, available, unit in wanted:
            amount = getattr(component, field)
            if amount is not None and available is not None and amount > available:
                message = f"a copy needs {amount:g} {unit}; {instance.name} has {available:g}"
                remedy = "Lower it, or choose a larger instance type."
                yield problem(Code.COMPONENT_TOO_LARGE, message, remedy, (*_SECTION, field))


def copies_have_bounds(deployment: Deployment) -> Iterator[Problem]:
    """A floor of copies or instances is within what the maximum of copies needs."""
    endpoint = deployment.config.endpoint
    component = component_plan(endpoint, deployment.instances, deployment.config.name)
    if component is None:
        return
    section, most = component.settings, component.max_instance_count
    yield from bounds_ascend(section, "min_copies", "max_copies", _SECTION)
    if section.min_instance_count > most:
        yield problem(
            Code.SCALING_RANGE,
            f"the minimum, {section.min_instance_count}, is above the {most} that hold the most "
            "copies",
            f"Raise `max_copies`, or use {most} or less.",
            (*_SECTION, "min_instance_count"),
        )


def settings_of_copies_have_effect(deployment: Deployment) -> Iterator[Problem]:
    """Refuses settings of copies that SageMaker would refuse or ignore."""
    section = deployment.config.endpoint.scale_to_zero
    if section is None:
        return
    if section.max_zone_imbalance is not None and section.placement_strategy is None:
        # SchedulingConfig requires PlacementStrategy: botocore's model, 1.44.
        message = "`max_zone_imbalance` needs `placement_strategy`"
        remedy = "Add `placement_strategy: spread`, or remove it."
        yield problem(Code.COPY_SETTING, message, remedy, (*_SECTION, "max_zone_imbalance"))
    most = section.max_copy_memory_mib
    if most is not None and most < section.copy_memory_mib:
        message = f"a copy reserves {section.copy_memory_mib} MiB, and may use {most} at most"
        remedy = "Raise it, or lower `copy_memory_mib`."
        yield problem(Code.COPY_SETTING, message, remedy, (*_SECTION, "max_copy_memory_mib"))


# Settings of an endpoint configuration, which only the host has. Routing always has a value.
_OF_THE_ENDPOINT = (
    *("instance_provision_timeout_seconds", "capacity_reservation_arn", "volume_size_gb"),
    *("inference_ami_version", "metrics", "volume_key_arn", "core_dump", "prefix_routing"),
)
_OF_THE_INSTANCES = ("min_instance_count", "consolidation")
_DEFAULT_ROUTING = "least_outstanding_requests"


def settings_belong_to_the_host(deployment: Deployment) -> Iterator[Problem]:
    """Refuses settings that a guest's stack has no resource for."""
    config = deployment.config
    host = config.endpoint.host
    if host is None:
        return
    endpoint = config.endpoint
    given: list[FieldPath] = [
        ("endpoint", name) for name in _OF_THE_ENDPOINT if getattr(endpoint, name)
    ]
    given += [
        ("endpoint", "scale_to_zero", name)
        for name in _OF_THE_INSTANCES
        if getattr(endpoint.copies, name)
    ]
    if endpoint.routing != _DEFAULT_ROUTING:
        given.append(("endpoint", "routing"))
    if not endpoint.dashboard:
        given.append(("endpoint", "dashboard"))
    given += [
        ("alarms", kind.field)
        for kind in ALARM_KINDS.values()
        if kind.watch.group is MACHINES and config.alarms.threshold(kind) is not None
    ]
    for field in given:
        message = f"`{field[-1]}` is a setting of the endpoint, and `{host}` has the endpoint"
        remedy = f"Remove it here, and set it for `{host}`."
        yield problem(Code.GUEST_SETTING, message, remedy, field)


def guests_share_the_artifacts(deployment: Deployment) -> Iterator[Problem]:
    """Refuses an isolated guest: the host's role, which runs the copies, cannot read its files."""
    host = deployment.config.endpoint.host
    if host is not None and deployment.config.artifacts.isolated:
        yield problem(
            Code.GUEST_SETTING,
            f"only the model's own role may read its files, and the role of `{host}` runs the "
            "copies",
            "Remove `isolated`, or remove `endpoint_of` for an endpoint of its own.",
            ("artifacts", "isolated"),
        )
