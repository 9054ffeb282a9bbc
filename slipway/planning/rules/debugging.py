"""Rules about core dumps and sessions of Systems Manager, which show the inside of a container."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.planning.deployment import Deployment, problem

_LACKS = {"ssm_access": "has no Systems Manager", "core_dump": "writes no core dumps"}


def sessions_reach_the_container(deployment: Deployment) -> Iterator[Problem]:
    """Refuses sessions that AWS does not start, or ignores.

    Sources, read 2026-11-29: https://docs.aws.amazon.com/sagemaker/latest/dg/ssm-access.html, and
    Terraform's aws_sagemaker_endpoint_configuration for inference components.
    """
    endpoint, field = deployment.config.endpoint, ("endpoint", "ssm_access")
    if endpoint.ssm_access and endpoint.network_isolation:
        yield problem(
            Code.SSM_ACCESS,
            "SageMaker starts no session in a container with network isolation",
            "Add `network_isolation: false`, or remove `ssm_access`.",
            field,
        )


def embedded_aws_has_it(deployment: Deployment) -> Iterator[Problem]:
    """Refuses settings that would have no effect on the embedded AWS."""
    environment = deployment.environment
    for name, lack in _LACKS.items() if environment.is_local else ():
        if getattr(deployment.config.endpoint, name):
            yield problem(
                Code.NOT_EMBEDDED,
                f"`{name}` has no effect in `{environment.name}`: the embedded AWS {lack}",
                f"Move `{name}` to an environment with an account, under `environments`.",
                ("endpoint", name),
            )
