"""The key of a repository of images, compared with what environments.yaml asks for."""

from collections.abc import Iterator

from slipway.access import Access
from slipway.codes.code import Code
from slipway.config.sections.keys import ARTIFACT_KEY
from slipway.errors import Kind, Problem
from slipway.planning.plan import DeploymentPlan


def compare_key(plan: DeploymentPlan, access: Access, wanted: str) -> Iterator[Problem]:
    """Yields the problem where a repository that exists is not encrypted as it should be.

    A repository keeps its encryption for ever. CloudFormation would try to replace it, and fail.

    Args:
        plan: the model's, of whose image the repository is.
        access: clients of the account.
        wanted: the field `repository_key`.

    Raises:
        ClientError: the account could not be examined.
    """
    ecr, ssm = access.client("ecr"), access.client("ssm")
    name = plan.image.repository
    try:
        (found,) = ecr.describe_repositories(registryId=plan.image.account, repositoryNames=[name])[
            "repositories"
        ]
        if wanted == ARTIFACT_KEY:
            parameter = f"{plan.environment.parameter_prefix}artifact-key-arn"
            wanted = ssm.get_parameter(Name=parameter)["Parameter"]["Value"]
    except (ecr.exceptions.RepositoryNotFoundException, ssm.exceptions.ParameterNotFound):
        return  # it will be made with the key, or the foundation comes first
    key = found["encryptionConfiguration"].get("kmsKey")
    if key == wanted:
        return
    remedy = (
        f"Remove `image_builds.repository_key` of {plan.environment.name} from environments.yaml"
        if key is None
        else f"Write `repository_key: {key}` for {plan.environment.name} in environments.yaml"
    )
    yield Problem(
        Code.REPOSITORY_KEY,
        Kind.STATE,
        f"the repository {name} is encrypted with {key or 'a key of ECR'}, and environments.yaml "
        f"asks for {wanted}",
        f"{remedy}: the encryption of a repository cannot be changed.",
    )
