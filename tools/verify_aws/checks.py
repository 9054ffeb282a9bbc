"""The checks before anything is created. Nothing here changes an account."""

import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from slipway.access import Access, credentials_problem
from slipway.codes.code import Code
from slipway.errors import Kind, Problem, UserError, did_you_mean
from slipway.facts.instances import instance_types
from slipway.facts.regions import hosted_types
from slipway.operations.preflight.quotas import compare_quotas
from slipway.planning.plan import DeploymentPlan
from slipway.project import Project
from tools.verify_aws.deep.updates import ROLLOUT_WAIT_SECONDS, TAG
from tools.verify_aws.project import (
    ENVIRONMENT,
    MODEL,
    QUEUE_MODEL,
    Settings,
    Target,
    image_uri,
    write_config,
    write_project,
)

BOOTSTRAP_PARAMETER = "/cdk-bootstrap/hnb659fds/version"
# The version that the templates of aws-cdk-lib require (its rule CheckBootstrapVersion).
_BOOTSTRAP_VERSION = 6
_MANIFESTS = [
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
]
_IMAGE = re.compile(r"(?P<account>\d+)\.dkr\.ecr\.[^/]+/(?P<repository>[^:]+):(?P<tag>.+)")


@dataclass(frozen=True)
class Caller:
    """The user of this program, as AWS sees it.

    Args:
        account: AWS account.
        arn: ARN of the user or role.
        region: AWS region.
        endpoint: address that answered, which distinguishes AWS from a stand-in.
        access: clients of that account and region.
    """

    account: str
    arn: str
    region: str
    endpoint: str
    access: Access


def find_region(given: str | None, environ: Mapping[str, str]) -> str:
    """Returns the given region, or else the region of the variables or of the profile.

    Raises:
        UserError: there is none, or AWS publishes no image there.
    """
    region = given or environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    if not region:
        try:
            region = boto3.Session().region_name
        except BotoCoreError as error:
            # For example a profile that does not exist.
            raise UserError.of(
                Code.UNKNOWN_REGION, str(error), "Set AWS_PROFILE to a profile that exists."
            ) from None
    if not region:
        raise UserError.of(
            Code.UNKNOWN_REGION,
            "no region is chosen",
            "Name one with `--region`, or set AWS_REGION.",
            kind=Kind.VALUE,
        )
    image_uri(region)
    return region


def identify(region: str) -> Caller:
    """Asks AWS for the owner of the credentials.

    Raises:
        UserError: there are none, or AWS does not accept them in that region.
    """
    what = f"no usable AWS credentials in {region}"
    log_in = (
        "Log in, for example with `aws sso login`, or set AWS_PROFILE. A region that is off by "
        "default has to be enabled in the account first."
    )
    try:
        access = Access(region, {})
        access.credentials()
        client = access.client("sts")
        found = client.get_caller_identity()
    # As in slipway.access: botocore's providers run the user's own programs and read files.
    except Exception as error:
        raise UserError([credentials_problem(what, error, log_in)]) from None
    return Caller(found["Account"], found["Arn"], region, client.meta.endpoint_url, access)


def check(caller: Caller, target: Target, folder: Path) -> list[str]:
    """Checks everything that would stop a run half-way.

    Args:
        caller: gives access to the account.
        target: the endpoint to deploy.
        folder: the project, already written.

    Returns:
        The checks that were not possible, one sentence each.

    Raises:
        UserError: every problem, with its remedy.
    """
    problems: list[Problem] = [*_instance_type(target)]
    looks = [partial(_bootstrap, caller), partial(_image, caller, target)]
    if not problems:
        try:
            # Slipway itself may refuse the configs.
            plans = [_plan(folder, MODEL)]
            if target.deep is not None:
                _plan(folder, QUEUE_MODEL)
                plans.append(_changed_plan(target, target.deep.other_type))
            looks += [partial(_quota, plan, caller) for plan in plans]
        except UserError as error:
            problems += error.problems
    notes: list[str] = []
    for look in looks:
        try:
            problems += look()
        except _UnknownError as error:
            notes.append(str(error))
    if problems:
        raise UserError(problems)
    return notes


def _plan(folder: Path, model: str) -> DeploymentPlan:
    project = Project(folder)
    environment = project.environment(ENVIRONMENT)
    return project.plan(model, environment, allow_unpublished=True)


def _changed_plan(target: Target, other_type: str) -> DeploymentPlan:
    """Returns a plan with every change of `--deep`, and both fleets of an update."""
    settings = Settings(
        other_type,
        instance_count=2,
        fault="requests",
        rollout_wait_seconds=ROLLOUT_WAIT_SECONDS,
        tag=TAG,
    )
    with tempfile.TemporaryDirectory() as folder:
        write_project(Path(folder), target)
        write_config(Path(folder), target, settings)
        return _plan(Path(folder), MODEL)


class _UnknownError(Exception):
    """The account does not give an answer; the message is the note.

    Args:
        what: the unknown fact.
        reason: AWS's answer.
    """

    def __init__(self, what: str, reason: object) -> None:
        # A proxy or a stand-in may answer with a whole page.
        super().__init__(f"{what}: {str(reason).splitlines()[0]}")


def _instance_type(target: Target) -> Iterator[Problem]:
    named = {"--instance-type": target.instance_type}
    if target.deep is not None:
        named["--other-type"] = target.deep.other_type
    for option, name in named.items():
        yield from _type_problems(target, option, name)


def _type_problems(target: Target, option: str, name: str) -> Iterator[Problem]:
    facts = instance_types().get(name)
    if facts is None:
        hint = did_you_mean(name, instance_types())
        yield Problem(
            Code.UNKNOWN_INSTANCE_TYPE,
            Kind.VALUE,
            f"no instance type {name!r} is known",
            f"{hint}For example ml.m5.large.",
        )
    elif facts.accelerator is not None or facts.architecture != "x86_64":
        kind = facts.accelerator.product if facts.accelerator else facts.architecture
        yield Problem(
            Code.ARM_PROCESSOR,
            Kind.COMPATIBILITY,
            f"{name} has {kind}, and the image runs on x86-64 processors alone",
            f"Name a small CPU type with `{option}`, for example ml.m5.large.",
        )
    elif (hosted := hosted_types(target.region)) is not None and name not in hosted:
        yield Problem(
            Code.TYPE_NOT_IN_REGION,
            Kind.COMPATIBILITY,
            f"{target.region} does not host {name}",
            f"Name another type with `{option}`, or another region with `--region`.",
        )


def _bootstrap(caller: Caller) -> Iterator[Problem]:
    command = f"cdk bootstrap aws://{caller.account}/{caller.region}"
    try:
        found = caller.access.client("ssm").get_parameter(Name=BOOTSTRAP_PARAMETER)
    except ClientError as error:
        if _code(error) != "ParameterNotFound":
            raise _UnknownError("whether the CDK is bootstrapped", error) from None
        yield Problem(
            Code.NOT_BOOTSTRAPPED,
            Kind.STATE,
            f"the CDK is not bootstrapped in {caller.region}: there is no SSM parameter "
            f"{BOOTSTRAP_PARAMETER}",
            f"Run `{command}`. This command never does: the roles that it makes are the account's.",
        )
        return
    version = found["Parameter"]["Value"]
    if version.isdecimal() and int(version) < _BOOTSTRAP_VERSION:
        yield Problem(
            Code.NOT_BOOTSTRAPPED,
            Kind.STATE,
            f"the CDK's bootstrap in {caller.region} has version {version}; templates need "
            f"{_BOOTSTRAP_VERSION}",
            f"Run `{command}`.",
        )


def _image(caller: Caller, target: Target) -> Iterator[Problem]:
    uri = image_uri(target.region)
    match = _IMAGE.fullmatch(uri)
    assert match is not None  # noqa: S101  # this module's own form
    missing = Problem(
        Code.IMAGE_NOT_IN_REGION,
        Kind.STATE,
        f"the image {uri} is not there",
        "Name another region with `--region`, and report this: AWS may have withdrawn the tag.",
    )
    try:
        found = caller.access.client("ecr").batch_get_image(
            registryId=match["account"],
            repositoryName=match["repository"],
            imageIds=[{"imageTag": match["tag"]}],
            acceptedMediaTypes=_MANIFESTS,
        )
    except ClientError as error:
        if _code(error) != "RepositoryNotFoundException":
            raise _UnknownError("whether the image is there", error) from None
        yield missing
        return
    if not found["images"]:
        yield missing


def _quota(plan: DeploymentPlan, caller: Caller) -> Iterator[Problem]:
    try:
        findings = list(compare_quotas(plan, caller.access))
    except (BotoCoreError, ClientError) as error:
        raise _UnknownError("the quota of instances", error) from None
    for each in findings:
        if not isinstance(each, str):
            yield each
        elif each.endswith("does not list it"):
            raise _UnknownError(*each.split(": "))


def _code(error: ClientError) -> str:
    code: str = error.response["Error"]["Code"]
    return code
