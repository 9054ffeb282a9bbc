"""Rules about the key of the storage volumes."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.config.sections.keys import is_of_region
from slipway.errors import Problem
from slipway.planning.deployment import Deployment, Rule, problem


def volume_key_is_of_the_region(deployment: Deployment) -> Iterator[Problem]:
    """EBS encrypts with keys of its own Region alone.

    https://docs.aws.amazon.com/ebs/latest/userguide/ebs-encryption.html (2026-11-24)
    """
    environment, key = deployment.environment, deployment.config.endpoint.volume_key_arn
    if key is None or is_of_region(key, environment.region):
        return
    yield problem(
        Code.KEY_ELSEWHERE,
        f"the key is in {key.split(':')[3]}, and the endpoint of `{environment.name}` in "
        f"{environment.region}",
        f"Name a key of {environment.region} under `environments: {environment.name}:`.",
        ("endpoint", "volume_key_arn"),
    )


RULES: tuple[Rule, ...] = (volume_key_is_of_the_region,)
