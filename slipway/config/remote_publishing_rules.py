"""Checks of an environment's `remote_publishing` beyond the form of its fields."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.errors import Kind, Problem


def remote_publishing_problems(environment: Environment) -> Iterator[Problem]:
    """Yields the problems of one environment's `remote_publishing`."""
    settings = environment.remote_publishing
    secret = None if settings is None else settings.hub_token_secret
    if secret is not None and secret.split(":")[3] != environment.region:
        yield Problem(
            Code.SECRET_ELSEWHERE,
            Kind.VALUE,
            f"{secret} is in another region than the environment",
            "A build reads secrets of its own region: replicate the secret to "
            f"{environment.region}, and name the ARN of the replica.",
            (environment.name, "remote_publishing", "hub_token_secret"),
        )
