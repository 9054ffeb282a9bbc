"""What a deploy needs in the account, checked before CloudFormation finds it missing."""

from typing import Any

from botocore.exceptions import ClientError

from slipway.access import Access
from slipway.codes.code import Code
from slipway.config.names import LOCAL
from slipway.errors import Kind, Problem, UserError
from slipway.image_sources import IMAGE_SOURCES
from slipway.operations.async_places import find_places
from slipway.operations.capture_bucket import find_bucket
from slipway.operations.execution_role import examine_role
from slipway.operations.mode import compare_mode
from slipway.operations.network import compare_network
from slipway.operations.quotas import compare_quotas
from slipway.operations.repository_keys import compare_key
from slipway.operations.scaling import compare_scaling
from slipway.operations.volume_key import examine_key
from slipway.planning.artifact_place import FOUNDATION_ID
from slipway.planning.plan import ArtifactPlan, DeploymentPlan
from slipway.planning.vpc import SECURITY_GROUP_ID
from slipway.publishing.store import SEAL, other_key
from slipway.publishing.stored import listed, seal

_OUR_REPOSITORIES = "slipway/"


def preflight(
    plan: DeploymentPlan,
    access: Access,
    *,
    repository_key: str | None = None,
    why_not_served: str | None = None,
) -> list[str]:
    """Checks one plan against its account.

    Args:
        plan: of the model.
        access: clients of the account.
        repository_key: of the environment's `image_builds`.
        why_not_served: why the embedded AWS cannot serve the model; None for any other account.

    Returns:
        What was found in order, one line each.

    Raises:
        UserError: everything that is missing, each with the command that makes it.
    """
    problems: list[Problem] = []
    if why_not_served is not None:
        remedy = "Deploy it to an account, or change what the message names."
        problems.append(_missing(Code.NOT_SERVED_HERE, why_not_served.rstrip("."), remedy))
    passed: list[str] = []
    place = plan.artifact_place
    own_key_arn, key_arn, made_group = None, None, None
    group_parameter = f"{plan.environment.parameter_prefix}{SECURITY_GROUP_ID}"
    parameters = [
        (place.key_parameter, place.stack_id),
        (f"{plan.environment.parameter_prefix}notification-topic-arn", FOUNDATION_ID),
    ]
    if plan.vpc is not None and not plan.vpc.security_group_ids:
        parameters.append((group_parameter, FOUNDATION_ID))
    for parameter, stack_id in parameters:
        try:
            value = access.client("ssm").get_parameter(Name=parameter)["Parameter"]["Value"]
        except ClientError as error:
            _require_code(error, "ParameterNotFound")
            problems.append(
                _missing(
                    Code.FOUNDATION_MISSING,
                    f"the SSM parameter {parameter} is not there",
                    f"Run `cdk deploy {stack_id} -c env={plan.environment.name}`.",
                )
            )
        else:
            passed.append(f"SSM parameter {parameter}")
            if parameter == place.key_parameter:
                key_arn = value
                own_key_arn = value if place.is_isolated else None
            elif parameter == group_parameter:
                made_group = value
    for part in [each for each in (plan.artifact, plan.weights) if each is not None]:
        try:
            unusable = _examine_artifact(plan, part, access.client("s3"), own_key_arn)
        except ClientError as error:
            raise _closed(error) from None
        if unusable is None:
            passed.append(f"artifact {part.digest}")
        else:
            problems.append(unusable)
    # The embedded AWS runs the programs of Slipway's images from the checkout.
    ours = plan.image.repository.startswith(_OUR_REPOSITORIES)
    family = plan.image.repository.rpartition("/")[2] if ours else ""
    if plan.environment.name != LOCAL and family in IMAGE_SOURCES:
        try:
            access.client("ecr").describe_images(
                registryId=plan.image.account,
                repositoryName=plan.image.repository,
                imageIds=[{"imageTag": plan.image.tag}],
            )
        except ClientError as error:
            _require_code(error, "ImageNotFoundException", "RepositoryNotFoundException")
            problems.append(
                _missing(
                    Code.IMAGE_MISSING,
                    f"the image {plan.image.uri} is not there",
                    f"Run `cdk deploy image-{family} -c env={plan.environment.name}`; it builds "
                    "it.",
                )
            )
        else:
            passed.append(f"image {plan.image.repository}:{plan.image.tag}")
        try:
            if repository_key is not None:
                problems += compare_key(plan, access, repository_key)
        except ClientError as error:
            raise _closed(error) from None
    try:
        if plan.config.endpoint.execution_role_arn is not None and key_arn is not None:
            lines, wrong_role = examine_role(
                plan,
                plan.config.endpoint.execution_role_arn,
                access,
                key_arn=key_arn,
                made_group=made_group,
            )
            passed += lines
            problems += wrong_role
        if plan.vpc is not None:
            wrong = compare_network(plan, plan.vpc, access, made_group)
            problems += wrong
            passed += [] if wrong else [f"network of {len(plan.vpc.subnet_ids)} subnets"]
        if plan.config.endpoint.volume_key_arn is not None:
            unusable = examine_key(plan.config.endpoint.volume_key_arn, access)
            if unusable is None:
                passed.append(f"volume key {plan.config.endpoint.volume_key_arn}")
            else:
                problems.append(unusable)
        if plan.capture is not None and plan.capture.bucket != plan.artifact.bucket:
            nowhere = find_bucket(plan.capture.bucket, access)
            if nowhere is None:
                passed.append(f"bucket {plan.capture.bucket}")
            else:
                problems.append(nowhere)
        if plan.config.endpoint.queue is not None:
            places, missing = find_places(plan.config.endpoint.queue, access)
            passed += places
            problems += missing
    except ClientError as error:
        raise _closed(error) from None
    live: list[str] = []
    for compare in (compare_mode, compare_scaling, compare_quotas):
        try:
            found_live, refused = compare(plan, access)
        except ClientError as error:
            raise _closed(error) from None
        live += found_live
        problems += refused
    if problems:
        raise UserError(problems)
    return passed + live


def notes(plan: DeploymentPlan) -> list[str]:
    """Returns what no check can tell about a plan, one line each."""
    if plan.environment.project:
        return []
    return [
        "owners are not compared: environments.yaml has no `project`, so the names of another "
        f"repository's environment {plan.environment.name} in this account would be the same"
    ]


def _examine_artifact(
    plan: DeploymentPlan, part: ArtifactPlan, client: Any, key_arn: str | None
) -> Problem | None:
    """Returns what is wrong with an artifact, as far as one listing of its files tells."""
    place, publish = (
        plan.artifact_place,
        f"Run `slipway publish {plan.config.name} --env {plan.environment.name}`",
    )
    manifest = {"Bucket": part.bucket, "Key": place.manifest_key(part.digest)}
    address = f"the artifact s3://{part.bucket}/{manifest['Key']}"
    try:
        found = client.head_object(**manifest)
    except ClientError as error:
        _require_code(error, "404", "NoSuchKey", "NoSuchBucket")
        return _missing(Code.ARTIFACT_MISSING, f"{address} is not there", f"{publish}.")
    if (problem := other_key(place, part.digest, found, key_arn)) is not None:
        return problem
    if found["Metadata"].get(SEAL) == seal(
        listed(client, part.bucket, place.files_prefix(part.digest))
    ):
        return None
    return _missing(
        Code.DAMAGED_ARTIFACT,
        f"{address} is not as it was published: a file was written or deleted since",
        f"{publish}: it compares every file, and sends what is missing or wrong.",
    )


def _missing(code: Code, message: str, remedy: str) -> Problem:
    return Problem(code, Kind.STATE, message, remedy)


def _require_code(error: ClientError, *codes: str) -> None:
    """Lets only the expected answers pass; a denied or failed call is not a missing thing."""
    if error.response["Error"]["Code"] not in codes:
        raise _closed(error) from None


def _closed(error: ClientError) -> UserError:
    return UserError.of(
        Code.LOOKUP_FAILED,
        f"the account could not be examined: {error}",
        "Use credentials that may read SSM parameters, the artifact bucket, ECR, IAM roles, EC2's "
        "networks, KMS keys, SNS topics, SageMaker's endpoints, scalable targets, stacks and "
        "Service Quotas.",
    )
