"""Models that share an endpoint: a host, and guests whose copies run on the host's instances.

A guest has an inference component of its own and no endpoint. The model of a component must have
the role, the network and the isolation of the endpoint. Source, read 2026-11-26:
https://docs.aws.amazon.com/sagemaker/latest/dg/realtime-endpoints-deploy-models.html, "Model and
endpoint compatibility"
"""

from collections.abc import Collection, Iterator

from slipway.codes.code import Code
from slipway.errors import FieldPath, Problem, did_you_mean
from slipway.planning.artifacts import has_source
from slipway.planning.component import SCALE_TO_ZERO
from slipway.planning.deployment import Deployment, problem
from slipway.planning.plan import DeploymentPlan, GuestPlan
from slipway.planning.vpc import vpc_plan

ENDPOINT_OF = ("endpoint", "scale_to_zero", "endpoint_of")
"""The field in which a guest names its host."""


def guest_plan(plan: DeploymentPlan) -> GuestPlan:
    """Returns what a host needs to know of a guest, which has copies."""
    if plan.component is None:
        raise ValueError(f"{plan.config.name} has no copies")
    most, watched = plan.component.max_instance_count, plan.watched_stacks
    return GuestPlan(plan.config.name, plan.image, plan.log_group_name, most, watched)


def _problem(message: str, remedy: str, field: FieldPath = ENDPOINT_OF) -> Problem:
    return problem(Code.SHARED_ENDPOINT, message, remedy, field)


def unknown_host(host: str, guest: str, names: Collection[str]) -> Problem | None:
    """Returns the problem of a host that is the guest itself, or no model of the project."""
    if host == guest:
        message = f"{guest} cannot run on its own endpoint as a guest"
        return _problem(message, "Remove `endpoint_of`, or name another model.")
    if host not in names:
        hint = did_you_mean(host, names)
        message = f"there is no model `{host}` whose endpoint could be shared"
        return _problem(message, f"{hint}Name a model of this project.")
    return None


def invalid_host(host: str) -> Problem:
    message = f"the config of `{host}` has problems, so its endpoint is not known"
    return _problem(message, f"Run `slipway validate {host}`, and correct them.")


def invalid_guest(host: str, guest: str) -> Problem:
    """Returns the problem of a host that has a guest with problems.

    Without the guest the host would lose the instances and the rights that the guest's copies need.
    """
    return _problem(
        f"the config of `{guest}` has problems, and its copies may run on the endpoint of `{host}`",
        f"Run `slipway validate {guest}`, and correct them.",
        ("endpoint", "scale_to_zero"),
    )


def compare_with_host(guest: Deployment, host: Deployment) -> Iterator[Problem]:
    """Yields the reasons for which an endpoint of the same environment cannot host a guest."""
    name, endpoint = host.config.name, host.config.endpoint
    if endpoint.mode != SCALE_TO_ZERO:
        message = f"the endpoint of `{name}` has `mode: {endpoint.mode}`, and hosts no copies"
        yield _problem(message, f"Set `mode: scale_to_zero` for `{name}`, or name another model.")
        return
    if (other := host.config.endpoint.host) is not None:
        yield _problem(
            f"`{name}` has no endpoint of its own: its copies run on the endpoint of `{other}`",
            f"Name `{other}`.",
        )
        return
    if host.config.artifacts.isolated:
        yield _problem(
            f"the role of `{name}` runs every copy on its endpoint, and reads the files of "
            f"`{name}` alone",
            f"Remove `isolated` from `{name}`, or name another model.",
        )
    if not has_source(host):
        environment = host.environment
        yield _problem(
            f"`{name}` has no {environment.artifacts} for {environment.name}, so there is no "
            "endpoint to share",
            f"Give `{name}` one, or name another model.",
        )
    ours, theirs = guest.config.endpoint.instances, endpoint.instances
    if ours != theirs:
        message = f"the instances differ from those of `{name}`: {', '.join(theirs)}"
        remedy = f"Set `instances: [{', '.join(theirs)}]`."
        yield _problem(message, remedy, ("endpoint", "instances"))
    theirs_role = endpoint.execution_role_arn
    if guest.config.endpoint.execution_role_arn != theirs_role:
        remedy = f"Set `execution_role_arn: {theirs_role}`." if theirs_role else "Remove it."
        yield _problem(
            f"the role of `{name}` runs every copy on its endpoint, and `execution_role_arn` "
            "differs",
            remedy,
            ("endpoint", "execution_role_arn"),
        )
    if guest.config.endpoint.network_isolation != endpoint.network_isolation:
        isolation = str(endpoint.network_isolation).lower()
        message = f"`network_isolation` is {isolation} for every copy on the endpoint of `{name}`"
        remedy = f"Set `network_isolation: {isolation}`."
        yield _problem(message, remedy, ("endpoint", "network_isolation"))
    if vpc_plan(guest.config, guest.environment) != vpc_plan(host.config, host.environment):
        yield _problem(
            f"the network differs from the network of `{name}`, which holds for every copy on its "
            "endpoint",
            f"Take over `vpc` from `{name}`.",
            ("endpoint", "vpc"),
        )
