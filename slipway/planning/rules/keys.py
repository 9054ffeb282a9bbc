"""Rules about the keys of an endpoint: volumes, core dumps, captured data, requests and answers."""

from collections.abc import Iterator
from typing import Any

from slipway.codes.code import Code
from slipway.config.sections.keys import is_of_region
from slipway.errors import Problem
from slipway.planning.deployment import Deployment, Rule, problem

_KEYS = (
    ("endpoint", "volume_key_arn"),
    ("endpoint", "core_dump", "key_arn"),
    ("endpoint", "data_capture", "key_arn"),
    *(("endpoint", "async_inference", f"{of}_key_arn") for of in ("input", "output", "topic")),
)


def _is_of_the_region(field: tuple[str, ...]) -> Rule:
    """Returns the rule of one key: EBS, S3, KMS and SNS use keys of their own Region alone.

    https://docs.aws.amazon.com/ebs/latest/userguide/ebs-encryption.html and
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html (2026-11-24)
    """

    def rule(deployment: Deployment) -> Iterator[Problem]:
        environment = deployment.environment
        key: Any = deployment.config
        for name in field:
            key = getattr(key, name, None)
        if key is not None and not is_of_region(key, environment.region):
            yield problem(
                Code.KEY_ELSEWHERE,
                f"the key is in {key.split(':')[3]}, and the endpoint of `{environment.name}` in "
                f"{environment.region}",
                f"Name a key of {environment.region} under `environments: {environment.name}:`.",
                field,
            )

    return rule


RULES: tuple[Rule, ...] = tuple(map(_is_of_the_region, _KEYS))
