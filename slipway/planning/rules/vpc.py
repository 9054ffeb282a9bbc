"""Rules about the VPC of an endpoint."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.planning.deployment import Deployment, problem

_SECTION = ("endpoint", "vpc")


def vpc_has_a_security_group(deployment: Deployment) -> Iterator[Problem]:
    """SageMaker takes no VPC without a security group."""
    vpc = deployment.config.endpoint.vpc
    if vpc is None or vpc.security_group_ids or deployment.environment.network is not None:
        return
    yield problem(
        Code.NETWORK,
        "the VPC has no security group, and environment "
        f"`{deployment.environment.name}` has no `network` that gives one",
        "Add `security_group_ids`, or a `network` to the environment in environments.yaml.",
        (*_SECTION, "security_group_ids"),
    )


def ids_are_named_once(deployment: Deployment) -> Iterator[Problem]:
    """SageMaker counts subnets and groups against its limits, so a repeated id is a mistake."""
    vpc = deployment.config.endpoint.vpc
    if vpc is None:
        return
    for name, ids in (
        ("subnet_ids", vpc.subnet_ids),
        ("security_group_ids", vpc.security_group_ids),
    ):
        for repeated in dict.fromkeys(one for one in ids if ids.count(one) > 1):
            yield problem(
                Code.NETWORK,
                f"{repeated} is listed twice",
                "Remove one of them.",
                (*_SECTION, name),
            )
