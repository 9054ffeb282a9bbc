"""Rules about a guest: a model whose copies run on the endpoint of another model."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.config.alarm_kinds import MACHINES
from slipway.config.sections.alarms import ALARM_KINDS
from slipway.errors import FieldPath, Problem
from slipway.planning.deployment import Deployment, problem

# Settings of an endpoint configuration, which only the host has. Routing always has a value.
_OF_THE_ENDPOINT = (
    "instance_provision_timeout_seconds",
    "capacity_reservation_arn",
    "volume_size_gb",
    "inference_ami_version",
    "metrics",
    "volume_key_arn",
    "core_dump",
    "prefix_routing",
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
        yield problem(
            Code.GUEST_SETTING,
            f"`{field[-1]}` is a setting of the endpoint, and `{host}` has the endpoint",
            f"Remove it here, and set it for `{host}`.",
            field,
        )


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
