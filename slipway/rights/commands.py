"""The least rights of single commands and of an execution role that exists already, as policies."""

from collections.abc import Sequence
from typing import Any

from slipway.config.environments import Environment
from slipway.planning.artifact_place import OUTPUT_PREFIX, ArtifactPlace
from slipway.planning.execution_rights import RoleContext, execution_rights
from slipway.planning.plan import DeploymentPlan, ImagePlan
from slipway.planning.statements import Statement, allow, policy_document
from slipway.rights.statements import Place, artifact_key, use_key, via_s3


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


def prune_policy(environment: Environment) -> dict[str, Any]:
    place = Place(environment)
    bucket = f"arn:{place.partition}:s3:::{environment.artifact_bucket}"
    repositories = place.arn("ecr", f"repository/{environment.repository_prefix}*")
    statements = [
        allow("FindArtifacts", ["s3:ListBucket", "s3:ListBucketMultipartUploads"], bucket),
        # An LMI package names its weights in serving.properties.
        allow("ReadPackages", ["s3:GetObject"], f"{bucket}/*/files/serving.properties"),
        # Every key, but only for objects of the bucket: isolated models have their own keys. S3
        # gives the bucket as context where bucket keys are on, else the object.
        allow(
            "UseArtifactKeys",
            ["kms:Decrypt"],
            place.arn("kms", "key/*"),
            StringLike={"kms:EncryptionContext:aws:s3:arn": [bucket, f"{bucket}/*"]},
        ),
        allow(
            "DeleteArtifacts",
            ["s3:DeleteObject"],
            *(f"{bucket}/{prefix}*" for prefix in ("artifacts/", "models/", OUTPUT_PREFIX)),
        ),
        allow("EndUploads", ["s3:AbortMultipartUpload"], f"{bucket}/*"),
        allow("FindRepositories", ["ecr:DescribeRepositories"], "*"),
        allow("DeleteImages", ["ecr:BatchDeleteImage", "ecr:DescribeImages"], repositories),
        allow(
            "ReadReferences",
            ["sagemaker:DescribeModel", "sagemaker:DescribeTrainingJob"],
            place.arn("sagemaker", "model/*"),
            place.arn("sagemaker", "training-job/*"),
        ),
        allow("ReadTemplates", ["cloudformation:GetTemplate"], place.arn("cloudformation", "*")),
        allow(
            "ListWhatHasNoNarrowerResource",
            [
                "cloudformation:DescribeStacks",
                "sagemaker:ListModels",
                "sagemaker:ListTrainingJobs",
            ],
            "*",
        ),
    ]
    return policy_document(statements)


def import_policy(environment: Environment, endpoint: str) -> dict[str, Any]:
    place = Place(environment)
    statements = [
        allow(
            "ReadEndpoint",
            ["sagemaker:DescribeEndpoint", "sagemaker:ListTags"],
            place.arn("sagemaker", f"endpoint/{endpoint}"),
        ),
        allow(
            "ReadConfigsAndModels",
            ["sagemaker:DescribeEndpointConfig", "sagemaker:DescribeModel"],
            # Their names are known only after the endpoint was read.
            place.arn("sagemaker", "endpoint-config/*"),
            place.arn("sagemaker", "model/*"),
        ),
        allow(
            "ReadComponent",
            ["sagemaker:DescribeInferenceComponent"],
            place.arn("sagemaker", "inference-component/*"),
        ),
        allow(
            "ListWhatHasNoNarrowerResource",
            [
                "application-autoscaling:DescribeScalableTargets",
                "application-autoscaling:DescribeScalingPolicies",
                "application-autoscaling:DescribeScheduledActions",
                "cloudwatch:DescribeAlarms",
                "logs:DescribeLogGroups",
                # For the hint where there is no endpoint of the name.
                "sagemaker:ListEndpoints",
                # For an endpoint whose variants have no model.
                "sagemaker:ListInferenceComponents",
            ],
            "*",
        ),
        # Settings of the server in the model data, config.json, and headers of safetensors files.
        allow(
            "ReadModelData",
            ["s3:GetObject", "s3:ListBucket"],
            f"arn:{place.partition}:s3:::*",
        ),
        # Every key of the account and region, but only for what S3 gives out.
        allow("DecryptModelData", ["kms:Decrypt"], place.arn("kms", "key/*"), **via_s3(place)),
    ]
    return policy_document(statements)


def role_policy(plan: DeploymentPlan, environment: Environment) -> dict[str, Any]:
    """Returns the policy of the execution role; Slipway gives its own roles the same rights."""
    place = Place(environment)
    groups = () if plan.vpc is None else plan.vpc.security_group_ids
    if plan.vpc is not None and not groups:
        # Only the account knows the id of the group that the foundation makes.
        groups = ("*",)
    context = RoleContext(place.partition, artifact_key(place, plan.artifact_place), groups)
    policies = execution_rights(plan, context)
    return policy_document(each for policy in policies for each in policy.statements)
