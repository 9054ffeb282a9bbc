"""The checks and the cost before anything is created. Nothing here changes an account."""

import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from botocore.exceptions import BotoCoreError, ClientError

from slipway.access import Access, account_errors, existing, open_shell_access
from slipway.codes.code import Code
from slipway.errors import Kind, Problem, UserError
from slipway.facts.instances import instance_types
from slipway.facts.prices import instance_price_per_hour
from slipway.facts.regions import hosted_types
from slipway.operations.preflight.findings import Finding, parted, wrong
from slipway.operations.preflight.quotas import compare_quotas
from slipway.planning.plan import DeploymentPlan
from slipway.project import Project
from tools.refresh_facts.base_digests import MANIFESTS
from tools.verify_aws.project import (
    ENVIRONMENT,
    MODEL,
    QUEUE_MODEL,
    ROLLOUT_WAIT_SECONDS,
    TAG,
    Settings,
    Target,
    image_uri,
    write_config,
    write_project,
)

BOOTSTRAP_PARAMETER = "/cdk-bootstrap/hnb659fds/version"
# The version that the templates of aws-cdk-lib require (its rule CheckBootstrapVersion).
_BOOTSTRAP_VERSION = 6
# Price of a customer managed key, prorated by the hour, until its deletion is scheduled.
# https://aws.amazon.com/kms/pricing/ (read 2026-11-23)
_KEY_USD_PER_MONTH = 1.0
# How long removal may take after the run's own time is over.
REMOVAL_MINUTES = 30
# The region whose prices the facts know best.
_KNOWN_REGION = "us-east-1"
_PRICE_LIST = "https://aws.amazon.com/sagemaker/ai/pricing/"


@dataclass(frozen=True)
class Caller:
    """The user of this program, as AWS sees it.

    `endpoint` is the address that answered, which distinguishes AWS from a stand-in.
    """

    account: str
    arn: str
    region: str
    endpoint: str
    access: Access


def identify(region: str | None) -> Caller:
    """Asks AWS for the owner of the shell's credentials; raises `UserError`."""
    access, region = open_shell_access(region)
    image_uri(region)
    client = access.client("sts")
    with account_errors():
        found = client.get_caller_identity()
    return Caller(found["Account"], found["Arn"], region, client.meta.endpoint_url, access)


def check(caller: Caller, target: Target, folder: Path) -> list[str]:
    """Checks everything that would stop a run half-way, with the project in the folder.

    Returns the checks that were not possible, one sentence each. Raises `UserError` with every
    problem.
    """
    notes, problems = parted(_findings(caller, target, folder))
    if problems:
        raise UserError(problems)
    return notes


def _findings(caller: Caller, target: Target, folder: Path) -> Iterator[Finding]:
    unfit = list(_unfit(target))
    yield from unfit
    plans: list[DeploymentPlan] = []
    try:
        # Slipway itself may refuse the configs.
        plans.append(_plan(folder, MODEL))
        if target.other_type is not None:
            _plan(folder, QUEUE_MODEL)
            plans.append(_changed_plan(target, target.other_type))
    except UserError as error:
        yield from error.problems
        plans = []
    yield from _bootstrap(caller)
    yield from _image(caller, target)
    for plan in plans if not unfit else ():
        yield from _quota(plan, caller)


def _plan(folder: Path, model: str) -> DeploymentPlan:
    project = Project(folder)
    return project.plan(model, project.environment(ENVIRONMENT), allow_unpublished=True)


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


def _unknown(what: str, reason: object) -> str:
    """Returns the note about an answer that the account does not give."""
    # A proxy or a stand-in may answer with a whole page.
    return f"{what}: {str(reason).splitlines()[0]}"


def _unfit(target: Target) -> Iterator[Problem]:
    """Yields why the image does not run on types that Slipway itself would accept."""
    hosted = hosted_types(target.region)
    named = (("--instance-type", target.instance_type), ("--other-type", target.other_type))
    for option, name in named:
        facts = instance_types().get(name or "")
        if facts is None:
            continue  # the plan tells
        if facts.accelerator is not None or facts.architecture != "x86_64":
            kind = facts.accelerator.product if facts.accelerator else facts.architecture
            yield Problem(
                Code.ARM_PROCESSOR,
                Kind.COMPATIBILITY,
                f"{name} has {kind}, and the image runs on x86-64 processors alone",
                f"Name a small CPU type with `{option}`, for example ml.m5.large.",
            )
        elif hosted is not None and name not in hosted:
            yield Problem(
                Code.TYPE_NOT_IN_REGION,
                Kind.COMPATIBILITY,
                f"{target.region} does not host {name}",
                f"Name another type with `{option}`, or another region with `--region`.",
            )


def _bootstrap(caller: Caller) -> Iterator[Finding]:
    get = caller.access.client("ssm").get_parameter
    try:
        found = existing(get, "ParameterNotFound", Name=BOOTSTRAP_PARAMETER)
    except ClientError as error:
        yield _unknown("whether the CDK is bootstrapped", error)
        return
    version = found["Parameter"]["Value"] if found else ""
    if found and not (version.isdecimal() and int(version) < _BOOTSTRAP_VERSION):
        return
    message = (
        f"the CDK's bootstrap in {caller.region} has version {version}; templates need "
        f"{_BOOTSTRAP_VERSION}"
        if found
        else f"the CDK is not bootstrapped in {caller.region}: there is no SSM parameter "
        f"{BOOTSTRAP_PARAMETER}"
    )
    remedy = (
        f"Run `cdk bootstrap aws://{caller.account}/{caller.region}`. This command never does: the "
        "roles that it makes are the account's."
    )
    yield wrong(Code.NOT_BOOTSTRAPPED, message, remedy)


def _image(caller: Caller, target: Target) -> Iterator[Finding]:
    uri = image_uri(target.region)
    registry, _, name = uri.partition("/")
    repository, _, tag = name.partition(":")
    try:
        found = existing(
            caller.access.client("ecr").batch_get_image,
            "RepositoryNotFoundException",
            registryId=registry.partition(".")[0],
            repositoryName=repository,
            imageIds=[{"imageTag": tag}],
            acceptedMediaTypes=list(MANIFESTS),
        )
    except ClientError as error:
        yield _unknown("whether the image is there", error)
        return
    if not found or not found["images"]:
        yield wrong(
            Code.IMAGE_NOT_IN_REGION,
            f"the image {uri} is not there",
            "Name another region with `--region`, and report this: AWS may have withdrawn the tag.",
        )


def _quota(plan: DeploymentPlan, caller: Caller) -> Iterator[Finding]:
    try:
        for each in compare_quotas(plan, caller.access):
            # Other lines say what is in order.
            if not isinstance(each, str) or each.endswith("does not list it"):
                yield each
    except (BotoCoreError, ClientError) as error:
        yield _unknown("the quota of instances", error)


class Cost(NamedTuple):
    """The cost that is shown before anything is created, of the dearest type of the instances.

    The instance may run for the run's limit and its removal. No price means that no source has one.
    """

    instance_type: str
    usd_per_hour: float | None
    minutes: int
    lines: Sequence[str]


def estimate(
    instance_types: Sequence[str], region: str, limit_minutes: int, *, at_once: int = 1
) -> Cost:
    """Returns the most that a run costs, given up and removed after so many minutes."""
    prices = {name: instance_price_per_hour(name, region) for name in instance_types}
    name, price = max(prices.items(), key=lambda each: each[1].usd if each[1] else math.inf)
    minutes = limit_minutes + REMOVAL_MINUTES
    runs = "It runs" if at_once == 1 else f"Up to {at_once} run at once"
    time = f"{runs} for {minutes} minutes at most"
    if price:
        first = (
            f"One {name} in {region} costs {price.usd:g} USD an hour (as of "
            f"{price.as_of.isoformat()}). {time}: {price.usd * minutes / 60 * at_once:.2f} USD."
        )
    else:
        known = instance_price_per_hour(name, _KNOWN_REGION)
        there = f"In {_KNOWN_REGION} it is {known.usd:g} USD an hour. " if known else ""
        first = f"The price of {name} in {region} is not known. {there}See {_PRICE_LIST}. {time}."
    key = (
        f"A KMS key costs {_KEY_USD_PER_MONTH:g} USD a month until you remove it. The command for "
        "that is printed at the end."
    )
    rest = "Alarms, functions, logs and a few small files are billed by use: cents at most."
    return Cost(name, price.usd if price else None, minutes, [first, key, rest])
