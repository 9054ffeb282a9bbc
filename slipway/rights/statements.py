"""What policies of IAM are made of: statements, and the ARNs of an account and region."""

from typing import Any

from slipway.config.environments import Environment
from slipway.planning.artifact_place import ArtifactPlace
from slipway.planning.rights import Key

Statement = dict[str, Any]


def allow(sid: str, actions: list[str], *resources: str) -> Statement:
    """Returns a statement that allows actions on resources."""
    return {"Sid": sid, "Effect": "Allow", "Action": actions, "Resource": list(resources)}


class Place:
    """An account and region, and the ARNs of what is in them."""

    def __init__(self, environment: Environment) -> None:
        self.account = environment.account
        self.region = environment.region
        special = {"cn": "aws-cn", "us-gov": "aws-us-gov"}
        self.partition = next(
            (name for prefix, name in special.items() if self.region.startswith(f"{prefix}-")),
            "aws",
        )
        self.domain = "amazonaws.com.cn" if self.partition == "aws-cn" else "amazonaws.com"

    def arn(self, service: str, resource: str) -> str:
        """Returns the ARN of a service's resource in the account and region."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"


def artifact_key(place: Place, artifacts: ArtifactPlace) -> Key:
    """Returns the key of artifacts; of a key that a stack makes, its alias.

    Nobody knows the id of such a key beforehand.
    """
    if artifacts.key_arn is not None:
        return Key(artifacts.key_arn)
    return Key(place.arn("kms", "key/*"), alias_condition(artifacts))


def alias_condition(artifacts: ArtifactPlace) -> dict[str, dict[str, str | list[str]]]:
    """Returns the condition that a key has the alias of the key of artifacts."""
    return {"ForAnyValue:StringEquals": {"kms:ResourceAliases": f"alias/{artifacts.key_alias}"}}


def use_key(sid: str, actions: list[str], place: Place, artifacts: ArtifactPlace) -> Statement:
    """Returns a statement about the key of artifacts, which S3 uses in the caller's name."""
    key = artifact_key(place, artifacts)
    condition: Statement = {"StringEquals": {"kms:ViaService": f"s3.{place.region}.{place.domain}"}}
    return {**allow(sid, actions, key.arn), "Condition": {**condition, **key.conditions}}
