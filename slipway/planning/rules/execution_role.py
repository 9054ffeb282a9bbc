"""Rules about an existing execution role."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.planning.deployment import Deployment, problem

_ACCOUNT = 4
"""Position of the account among the parts of an ARN."""


def role_is_of_the_account(deployment: Deployment) -> Iterator[Problem]:
    """Nobody can pass a role of another account to SageMaker.

    A role can only be passed to a service of its own account:
    https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_use_passrole.html, read 2026-11-25.
    """
    arn, environment = deployment.config.endpoint.execution_role_arn, deployment.environment
    if arn is not None and (account := arn.split(":")[_ACCOUNT]) != environment.account:
        yield problem(
            Code.EXECUTION_ROLE_ELSEWHERE,
            f"the role belongs to account {account}, and `{environment.name}` is in "
            f"{environment.account}",
            f"Name a role of {environment.account} under `environments: {environment.name}:`.",
            ("endpoint", "execution_role_arn"),
        )
