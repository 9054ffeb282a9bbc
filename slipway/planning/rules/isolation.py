"""Rules about a model's name, and about artifacts with a key of their own."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.planning.deployment import Deployment, problem

_FIELD = ("artifacts", "key_arn")


def key_is_of_an_isolated_model(deployment: Deployment) -> Iterator[Problem]:
    """Shared artifacts have the environment's key."""
    artifacts = deployment.config.artifacts
    if artifacts.key_arn is not None and not artifacts.isolated:
        yield problem(
            Code.ISOLATED_KEY,
            "`key_arn` has no effect without `isolated: true`: shared artifacts are encrypted with "
            "the environment's key",
            "Add `isolated: true`, or leave `key_arn` out.",
            _FIELD,
        )


def key_is_where_the_bucket_is(deployment: Deployment) -> Iterator[Problem]:
    """S3 encrypts with keys of the bucket's own Region alone.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html (2026-11-23). A
    key of another account would need a key policy that Slipway can neither write nor check.
    """
    environment, key = deployment.environment, deployment.config.artifacts.key_arn
    if key is None or not deployment.config.artifacts.isolated:
        return
    _, _, _, region, account, _ = key.split(":")
    remedy = (
        f"Name a key of {environment.account} in {environment.region} under `environments: "
        f"{environment.name}:`, or leave `key_arn` out: the stack then makes a key."
    )
    name = environment.name
    if region != environment.region:
        where = f"the artifact bucket of `{name}` in {environment.region}"
        message = f"the key is in {region}, and {where}"
    elif account != environment.account:
        where = f"environment `{name}` is {environment.account}"
        message = f"the key belongs to account {account}, and {where}"
    else:
        return
    yield problem(Code.KEY_ELSEWHERE, message, remedy, _FIELD)


def key_is_not_the_environments(deployment: Deployment) -> Iterator[Problem]:
    """Every role of the environment may decrypt with that one."""
    artifacts = deployment.config.artifacts
    if artifacts.isolated and artifacts.key_arn == deployment.environment.artifact_key_arn:
        if artifacts.key_arn is None:
            return
        message = "the key is the environment's own, with which every model's role may decrypt"
        remedy = "Name another key, or leave `key_arn` out: the stack then makes a key."
        yield problem(Code.ISOLATED_KEY, message, remedy, _FIELD)


# Of EndpointName in SageMaker's API. Without a project the limits of a model's and an environment's
# name keep within it.
_LONGEST_ENDPOINT_NAME = 63


def endpoint_name_fits(deployment: Deployment) -> Iterator[Problem]:
    """A project, a model and an environment make one name, which SageMaker limits."""
    environment = deployment.environment
    name = environment.stack_name(deployment.config.name)
    excess = len(name) - _LONGEST_ENDPOINT_NAME
    if excess > 0:
        yield problem(
            Code.NAME_TOO_LONG,
            f"the endpoint {name} would have {len(name)} characters, and SageMaker allows "
            f"{_LONGEST_ENDPOINT_NAME}",
            f"Shorten the model's name, or `project` or the environment's name in "
            f"environments.yaml, by {excess}.",
            ("name",),
        )
