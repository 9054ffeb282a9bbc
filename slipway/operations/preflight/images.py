"""The image of an endpoint, and the key of its repository."""

from collections.abc import Iterator

from slipway.access import Access, existing
from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.config.names import LOCAL
from slipway.config.sections.keys import ARTIFACT_KEY
from slipway.image_sources import IMAGE_SOURCES
from slipway.operations.preflight.findings import Finding, wrong
from slipway.planning.plan import ImagePlan
from slipway.publishing.training import find_image as find_ecr_image

_OUR_REPOSITORIES = "slipway/"


def find_image(
    image: ImagePlan, environment: Environment, access: Access, repository_key: str | None
) -> Iterator[Finding]:
    """Looks for an image that Slipway builds; nobody may list those of AWS."""
    family = image.repository.rpartition("/")[2]
    is_ours = image.repository.startswith(_OUR_REPOSITORIES) and family in IMAGE_SOURCES
    # The embedded AWS runs the programs of Slipway's images from the checkout.
    if environment.name == LOCAL or not is_ours:
        return
    if find_ecr_image(access, image) is None:
        remedy = f"Run `cdk deploy image-{family} -c env={environment.name}`; it builds it."
        yield wrong(Code.IMAGE_MISSING, f"the image {image.uri} is not there", remedy)
    else:
        yield f"image {image.repository}:{image.tag}"
    if repository_key is not None:
        yield from _compare_key(image, environment, access, repository_key)


def _compare_key(
    image: ImagePlan, environment: Environment, access: Access, wanted: str
) -> Iterator[Finding]:
    """Yields the problem where a repository that exists is not encrypted as it should be.

    A repository keeps its encryption for ever. CloudFormation would try to replace it, and fail.
    """
    ecr, ssm = access.client("ecr"), access.client("ssm")
    name = image.repository
    found = existing(
        ecr.describe_repositories,
        "RepositoryNotFoundException",
        registryId=image.account,
        repositoryNames=[name],
    )
    if found is None:
        return  # it will be made with the key
    if wanted == ARTIFACT_KEY:
        parameter = f"{environment.parameter_prefix}artifact-key-arn"
        answer = existing(ssm.get_parameter, "ParameterNotFound", Name=parameter)
        if answer is None:
            return  # the foundation comes first
        wanted = answer["Parameter"]["Value"]
    (repository,) = found["repositories"]
    key = repository["encryptionConfiguration"].get("kmsKey")
    if key == wanted:
        return
    remedy = (
        f"Remove `image_builds.repository_key` of {environment.name} from environments.yaml"
        if key is None
        else f"Write `repository_key: {key}` for {environment.name} in environments.yaml"
    )
    yield wrong(
        Code.REPOSITORY_KEY,
        f"the repository {name} is encrypted with {key or 'a key of ECR'}, and environments.yaml "
        f"asks for {wanted}",
        f"{remedy}: the encryption of a repository cannot be changed.",
    )
