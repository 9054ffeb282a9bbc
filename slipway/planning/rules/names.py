"""Rules about names."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.planning.deployment import Deployment, problem

# Of EndpointName in SageMaker's API. Without a project the limits of a model's and an environment's
# name keep within it.
_LONGEST_ENDPOINT_NAME = 63


def endpoint_name_fits(deployment: Deployment) -> Iterator[Problem]:
    """A project, a model and an environment make one name, which SageMaker limits."""
    environment = deployment.environment
    name = environment.stack_name(deployment.config.name)
    excess = len(name) - _LONGEST_ENDPOINT_NAME
    if excess > 0:
        yield problem(
            Code.NAME_TOO_LONG,
            f"the endpoint {name} would have {len(name)} characters, and SageMaker allows "
            f"{_LONGEST_ENDPOINT_NAME}",
            f"Shorten the model's name, or `project` or the environment's name in "
            f"environments.yaml, by {excess}.",
            ("name",),
        )
