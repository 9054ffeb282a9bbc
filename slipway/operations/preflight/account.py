"""Every check of a plan against its account."""

from collections.abc import Iterator

from botocore.exceptions import ClientError

from slipway.access import Access, existing
from slipway.codes.code import Code
from slipway.errors import UserError
from slipway.operations.preflight.execution_role import examine_role
from slipway.operations.preflight.findings import Finding, parted, wrong
from slipway.operations.preflight.live import compare_mode, compare_stack
from slipway.operations.preflight.network import compare_network
from slipway.operations.preflight.places import find_image, find_places
from slipway.operations.preflight.quotas import compare_quotas
from slipway.operations.preflight.scaling import compare_scaling
from slipway.planning.artifact_place import FOUNDATION_ID
from slipway.planning.plan import ArtifactPlan, DeploymentPlan
from slipway.planning.vpc import SECURITY_GROUP_ID
from slipway.publishing.store import SEAL, other_key
from slipway.publishing.stored import listed, seal


def preflight(
    plan: DeploymentPlan,
    access: Access,
    *,
    repository_key: str | None = None,
    why_not_served: str | None = None,
) -> list[str]:
    """Checks one plan against its account; returns what was found in order, one line each.

    `why_not_served` is why the embedded AWS cannot serve the model. Raises `UserError` for
    everything that is missing, each with the command that makes it.
    """
    try:
        lines, problems = parted(_findings(plan, access, repository_key, why_not_served))
    except ClientError as error:
        raise UserError.of(
            Code.LOOKUP_FAILED,
            f"the account could not be examined: {error}",
            "Use credentials that may read SSM parameters, the artifact bucket, ECR, IAM roles, "
            "EC2's networks, KMS keys, SNS topics, SageMaker's endpoints, scalable targets, stacks "
            "and Service Quotas.",
        ) from None
    if problems:
        raise UserError(problems)
    return lines


def notes(plan: DeploymentPlan) -> list[str]:
    if plan.environment.project:
        return []
    return [
        "owners are not compared: environments.yaml has no `project`, so the names of another "
        f"repository's environment {plan.environment.name} in this account would be the same"
    ]


def _findings(
    plan: DeploymentPlan, access: Access, repository_key: str | None, why_not_served: str | None
) -> Iterator[Finding]:
    if why_not_served is not None:
        remedy = "Deploy it to an account, or change what the message names."
        yield wrong(Code.NOT_SERVED_HERE, why_not_served.rstrip("."), remedy)
    place = plan.artifact_place
    group_parameter = f"{plan.environment.parameter_prefix}{SECURITY_GROUP_ID}"
    parameters = {
        place.key_parameter: place.stack_id,
        f"{plan.environment.parameter_prefix}notification-topic-arn": FOUNDATION_ID,
    }
    if plan.vpc is not None and not plan.vpc.security_group_ids:
        parameters[group_parameter] = FOUNDATION_ID
    made: dict[str, str] = {}
    for name, stack_id in parameters.items():
        ssm = access.client("ssm")
        if (found := existing(ssm.get_parameter, "ParameterNotFound", Name=name)) is None:
            remedy = f"Run `cdk deploy {stack_id} -c env={plan.environment.name}`."
            yield wrong(Code.FOUNDATION_MISSING, f"the SSM parameter {name} is not there", remedy)
        else:
            made[name] = found["Parameter"]["Value"]
            yield f"SSM parameter {name}"
    key_arn, made_group = made.get(place.key_parameter), made.get(group_parameter)
    parts = [part for each in plan.every_served for part in (each.artifact, each.weights)]
    for part in dict.fromkeys(parts):
        if part is not None:
            yield _examine_artifact(plan, part, access, key_arn if place.is_isolated else None)
    for image in dict.fromkeys(each.image for each in plan.every_served):
        yield from find_image(image, plan.environment, access, repository_key)
    role_arn = plan.config.endpoint.execution_role_arn
    if role_arn is not None and key_arn is not None:
        yield from examine_role(plan, role_arn, access, key_arn=key_arn, made_group=made_group)
    if plan.vpc is not None:
        yield from compare_network(plan, plan.vpc, access, made_group)
    yield from find_places(plan, access)
    yield from compare_stack(plan, access)
    yield from compare_mode(plan, access)
    yield from compare_scaling(plan, access)
    yield from compare_quotas(plan, access)


def _examine_artifact(
    plan: DeploymentPlan, part: ArtifactPlan, access: Access, key_arn: str | None
) -> Finding:
    """Returns what is wrong with an artifact, as far as one listing of its files tells."""
    client, place = access.client("s3"), plan.artifact_place
    publish = f"Run `slipway publish {plan.config.name} --env {plan.environment.name}`"
    key = place.manifest_key(part.digest)
    address = f"the artifact s3://{part.bucket}/{key}"
    missing = ("404", "NoSuchKey", "NoSuchBucket")
    found = existing(client.head_object, *missing, Bucket=part.bucket, Key=key)
    if found is None:
        return wrong(Code.ARTIFACT_MISSING, f"{address} is not there", f"{publish}.")
    if (problem := other_key(place, part.digest, found, key_arn)) is not None:
        return problem
    objects = listed(client, part.bucket, place.files_prefix(part.digest))
    if part.object_name not in (None, *objects):
        message = f"{address} has no file {part.object_name}, which is the model data"
        return wrong(Code.MODEL_DATA_OBJECT, message, "Correct `model_data_object`.")
    if found["Metadata"].get(SEAL) == seal(objects):
        return f"artifact {part.digest}"
    return wrong(
        Code.DAMAGED_ARTIFACT,
        f"{address} is not as it was published: a file was written or deleted since",
        f"{publish}: it compares every file, and sends what is missing or wrong.",
    )
