"""Rules about the keys of the storage volumes and of core dumps."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.config.sections.keys import is_of_region
from slipway.errors import FieldPath, Problem
from slipway.planning.deployment import Deployment, Rule, problem


def keys_are_of_the_region(deployment: Deployment) -> Iterator[Problem]:
    """EBS and S3 encrypt with keys of their own Region alone.

    https://docs.aws.amazon.com/ebs/latest/userguide/ebs-encryption.html and
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html (2026-11-24)
    """
    environment, endpoint = deployment.environment, deployment.config.endpoint
    named: dict[FieldPath, str | None] = {("endpoint", "volume_key_arn"): endpoint.volume_key_arn}
    if endpoint.core_dump is not None:
        named["endpoint", "core_dump", "key_arn"] = endpoint.core_dump.key_arn
    for field, key in named.items():
        if key is not None and not is_of_region(key, environment.region):
            yield problem(
                Code.KEY_ELSEWHERE,
                f"the key is in {key.split(':')[3]}, and the endpoint of `{environment.name}` in "
                f"{environment.region}",
                f"Name a key of {environment.region} under `environments: {environment.name}:`.",
                field,
            )


RULES: tuple[Rule, ...] = (keys_are_of_the_region,)
