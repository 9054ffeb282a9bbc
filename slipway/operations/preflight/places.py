"""The image, and the buckets, topics and keys that a config names."""

from collections.abc import Iterator

from slipway.access import Access, existing
from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.config.names import LOCAL
from slipway.config.sections.endpoint import AsyncInference
from slipway.config.sections.keys import ARTIFACT_KEY
from slipway.image_sources import IMAGE_SOURCES
from slipway.operations.preflight.findings import Finding, wrong
from slipway.planning.plan import DeploymentPlan, ImagePlan
from slipway.publishing.training import find_image as find_ecr_image

_SYMMETRIC = "SYMMETRIC_DEFAULT"
_NO_BUCKET = ("404", "NoSuchBucket")


def find_places(plan: DeploymentPlan, access: Access) -> Iterator[Finding]:
    settings = plan.config.endpoint
    if settings.volume_key_arn is not None:
        yield examine_volume_key(settings.volume_key_arn, access)
    if plan.capture is not None and plan.capture.bucket != plan.artifact.bucket:
        yield find_capture_bucket(plan.capture.bucket, access)
    if settings.queue is not None:
        yield from find_queue(settings.queue, access)


def examine_volume_key(arn: str, access: Access) -> Finding:
    """Looks at the key of the storage volumes, which would fail the endpoint after minutes."""
    kms = access.client("kms")
    found = existing(kms.describe_key, "NotFoundException", KeyId=arn)
    if found is None:
        message, remedy = f"the key {arn} does not exist", "Correct `volume_key_arn`."
    elif (state := found["KeyMetadata"]["KeyState"]) != "Enabled":
        message = f"the key {arn} is in state {state}"
        remedy = "Enable the key, or name another one in `volume_key_arn`."
    elif (kind := found["KeyMetadata"]["KeySpec"]) != _SYMMETRIC:
        message = f"the key {arn} is of kind {kind}, and volumes take symmetric keys"
        remedy = "Name a symmetric key in `volume_key_arn`."
    else:
        return f"volume key {arn}"
    return wrong(Code.VOLUME_KEY, message, remedy)


def find_capture_bucket(bucket: str, access: Access) -> Finding:
    if existing(access.client("s3").head_bucket, *_NO_BUCKET, Bucket=bucket) is not None:
        return f"bucket {bucket}"
    return wrong(
        Code.CAPTURE_BUCKET,
        f"the bucket {bucket}, for captured data, does not exist",
        "Correct `data_capture.destination`, or make the bucket.",
    )


def find_queue(queue: AsyncInference, access: Access) -> Iterator[Finding]:
    s3, sns, kms = (access.client(service) for service in ("s3", "sns", "kms"))
    for bucket in queue.buckets:
        found = existing(s3.head_bucket, *_NO_BUCKET, Bucket=bucket)
        yield _of_queue("bucket", bucket, is_missing=found is None)
    for topic in queue.topic_arns:
        missing = ("NotFound", "NotFoundException")
        found = existing(sns.get_topic_attributes, *missing, TopicArn=topic)
        yield _of_queue("topic", topic, is_missing=found is None)
    for key in queue.key_arns:
        found = existing(kms.describe_key, "NotFoundException", KeyId=key)
        state = "Enabled" if found is None else found["KeyMetadata"]["KeyState"]
        if state == "Enabled":
            yield _of_queue("key", key, is_missing=found is None)
        else:
            remedy = "Enable the key, or name another one in `async_inference`."
            yield wrong(Code.ASYNC_PLACE, f"the key {key} is in state {state}", remedy)


def _of_queue(noun: str, name: str, *, is_missing: bool) -> Finding:
    if not is_missing:
        return f"{noun} {name}"
    remedy = f"Correct `async_inference`, or make the {noun}."
    return wrong(Code.ASYNC_PLACE, f"the {noun} {name} does not exist", remedy)


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
