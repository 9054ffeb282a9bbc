"""What the policies of commands name: the ARNs of an account and region, and artifacts' keys."""

from slipway.config.environments import Environment
from slipway.planning.artifact_place import ArtifactPlace
from slipway.planning.statements import Key, Statement, allow


class Place:
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
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"


def artifact_key(place: Place, artifacts: ArtifactPlace) -> Key:
    """Returns the key of artifacts; of a key that a stack makes, its alias.

    Nobody knows the id of such a key beforehand.
    """
    if artifacts.key_arn is not None:
        return Key(artifacts.key_arn)
    return Key(place.arn("kms", "key/*"), alias_condition(artifacts))


def alias_condition(artifacts: ArtifactPlace) -> dict[str, dict[str, str | list[str]]]:
    return {"ForAnyValue:StringEquals": {"kms:ResourceAliases": f"alias/{artifacts.key_alias}"}}


def use_key(sid: str, actions: list[str], place: Place, artifacts: ArtifactPlace) -> Statement:
    """Returns a statement about the key of artifacts, which S3 uses in the caller's name."""
    key = artifact_key(place, artifacts)
    return allow(sid, actions, key.arn, **via_s3(place), **key.conditions)


def via_s3(place: Place) -> dict[str, dict[str, str]]:
    return {"StringEquals": {"kms:ViaService": f"s3.{place.region}.{place.domain}"}}
