"""Checks of an environment's `permissions_boundary_arn` beyond its form."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.errors import Kind, Problem


def boundary_problems(environment: Environment) -> Iterator[Problem]:
    """Yields the problem of a boundary that IAM would refuse: a policy of another account."""
    arn = environment.permissions_boundary_arn
    if arn is None or arn.split(":")[4] in ("aws", environment.account):
        return
    yield Problem(
        Code.ROLE_BOUNDARY,
        Kind.VALUE,
        f"the policy belongs to account {arn.split(':')[4]}, and environment "
        f"`{environment.name}` is {environment.account}",
        "Name a policy of the environment's account, or a policy that AWS manages.",
        (environment.name, "permissions_boundary_arn"),
    )
