"""The least rights that `slipway publish --from` needs, as a policy of IAM."""

from collections.abc import Sequence
from typing import Any

from slipway.config.environments import Environment
from slipway.planning.artifact_place import ArtifactPlace
from slipway.planning.plan import ImagePlan
from slipway.planning.statements import Statement, allow, policy_document
from slipway.rights.statements import Place, use_key


def promotion_policy(
    environment: Environment,
    target: ArtifactPlace,
    *,
    source: Environment,
    source_place: ArtifactPlace,
    has_recipes: bool,
    images: Sequence[tuple[ImagePlan, ImagePlan]] = (),
) -> dict[str, Any]:
    """Returns the policy to copy a model's artifact from one environment to another.

    With a profile for the source, the statements with `Source` in their names belong to that
    profile, and the others to the target's credentials. `has_recipes` is whether another publish to
    the target would fetch or compile. `images` are, with `--image`, each image there and the tested
    one.
    """
    place, origin = Place(environment), Place(source)
    # A package of code is sent as `slipway publish` sends it.
    written = [target.artifacts_prefix, target.incoming_prefix]
    read = [source_place.artifacts_prefix]
    if has_recipes:
        written.append(target.recipes_prefix)
        read.append(source_place.recipes_prefix)
    statements = [
        _find("FindArtifacts", place, target, [target.root, target.incoming_prefix]),
        allow(
            "WriteArtifacts",
            ["s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"],
            *_under(place, target, written),
        ),
        use_key("UseArtifactKey", ["kms:Decrypt", "kms:GenerateDataKey"], place, target),
        _find("FindSource", origin, source_place, [source_place.root]),
        allow("ReadSource", ["s3:GetObject"], *_under(origin, source_place, read)),
        use_key("UseSourceKey", ["kms:Decrypt"], origin, source_place),
    ]
    if target.is_isolated:
        parameter = place.arn("ssm", f"parameter{target.key_parameter}")
        statements.append(allow("FindArtifactKey", ["ssm:GetParameter"], parameter))
    if images:
        written_to, read_from = (
            dict.fromkeys(where.arn("ecr", f"repository/{image.repository}") for image in side)
            for where, side in zip((place, origin), zip(*images, strict=True), strict=True)
        )
        write = ["CompleteLayerUpload", "InitiateLayerUpload", "PutImage", "UploadLayerPart"]
        look = ["BatchCheckLayerAvailability", "BatchGetImage"]
        statements += [
            allow("WriteImage", sorted(f"ecr:{each}" for each in look + write), *written_to),
            allow(
                "ReadSourceImage", ["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"], *read_from
            ),
        ]
    return policy_document(statements)


def _find(sid: str, place: Place, artifacts: ArtifactPlace, prefixes: list[str]) -> Statement:
    """Allows to list the artifacts; HeadBucket is allowed by it as well."""
    listed = [f"{prefix}*" for prefix in prefixes]
    own = {"StringLike": {"s3:prefix": listed}} if artifacts.is_isolated else {}
    return allow(sid, ["s3:ListBucket"], f"arn:{place.partition}:s3:::{artifacts.bucket}", **own)


def _under(place: Place, artifacts: ArtifactPlace, prefixes: list[str]) -> list[str]:
    return [f"arn:{place.partition}:s3:::{artifacts.bucket}/{prefix}*" for prefix in prefixes]
