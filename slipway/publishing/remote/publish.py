"""`slipway publish NAME --remote`: publishes in a build next to S3, and writes the lock here."""

import contextlib
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from slipway.access import Access, existing
from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.config.sections.artifacts import HubWeights, PathWeights, S3Weights
from slipway.config.sections.remote_publishing import RemotePublishing
from slipway.config.sections.serving import PACKAGES
from slipway.errors import FieldPath, Kind, Problem, UserError
from slipway.facts.prices import build_disk_gb, build_price_per_minute
from slipway.planning.artifact_place import artifact_place
from slipway.planning.compiling import CompilePlan
from slipway.planning.deployment import Deployment
from slipway.planning.remote_place import ENVIRONMENT, INPUTS, MODEL, SOURCE_DIGEST
from slipway.project import Project
from slipway.publishing.progress import Progress
from slipway.publishing.publish import Published, check_publishable, located_in, record
from slipway.publishing.remote.builds import Build, BuildProject, PublishBuilds, variable_of
from slipway.publishing.remote.result import read_result, result_key
from slipway.publishing.remote.source import Source, make_source
from slipway.publishing.store import ArtifactStore

_WEIGHTS: FieldPath = ("artifacts", "weights")
_LARGEST = "2xlarge"


@dataclass(frozen=True)
class RemotelyPublished:
    build: str
    published: Published


def publish_remotely(
    project: Project, name: str, environment: Environment, access: Access, progress: Progress
) -> RemotelyPublished:
    """Publishes one model in a build of the account; joins a build that does so already.

    It can be stopped at any moment: the build goes on, and the next run joins it.
    """
    settings = _settings(environment)
    deployment, compiling = check_publishable(project, name, environment)
    _require_fit_for_a_build(project, deployment, settings)
    source = make_source(project, deployment)
    place = artifact_place(deployment.config, environment)
    store = ArtifactStore(access, environment, place, progress)
    store.require_bucket()
    builds = PublishBuilds(access, environment, progress)
    deployed = builds.project()
    inputs = _inputs(source, name, environment)
    left = _Left(project.root, name, environment)
    build = left.take(builds, inputs, progress)
    if build is None:
        running = builds.running(INPUTS, inputs)
        if running:
            build = running[0]
            progress.note(f"The build {build['id']} does the same: joined.")
    if build is None:
        progress.note(_limits(deployed, environment, compiling and compiling[0]))
        _send(access, store.bucket, source)
        variables = {
            SOURCE_DIGEST: source.digest,
            MODEL: name,
            ENVIRONMENT: environment.name,
            INPUTS: inputs,
        }
        build = builds.start(f"{store.bucket}/{source.key}", variables)
        left.keep(build["id"], inputs)
        progress.note(f"The build {build['id']} began.")
    identifier: str = build["id"]
    try:
        ended = builds.follow(identifier)
    except KeyboardInterrupt:
        progress.note(
            f"The build {identifier} goes on. Run the same command to join it; "
            f"`slipway publish {name} --env {environment.name} --remote --cancel` stops it."
        )
        raise
    left.forget()
    result = _result(access, store.bucket, identifier)
    if result is None:
        raise builds.failure(ended)
    made = read_result(result)
    return RemotelyPublished(identifier, record(project, deployment, made))


def cancel(
    project: Project, name: str, environment: Environment, access: Access, progress: Progress
) -> list[str]:
    """Stops every running build of a model; returns their ids; raises `UserError` without any."""
    _settings(environment)
    builds = PublishBuilds(access, environment, progress)
    builds.project()
    names = project.published_names(name, environment)
    running = [build["id"] for each in names for build in builds.running(MODEL, each)]
    if not running:
        raise UserError.of(
            Code.NO_BUILD,
            f"no build publishes {name} to {environment.name}",
            "Nothing has to be stopped.",
        )
    for identifier in running:
        progress.note(f"Stopping the build {identifier}.")
        builds.stop(identifier)
    for each in names:
        _Left(project.root, each, environment).forget()
    return running


class _Left:
    """The build that this machine started and whose result it has not taken yet."""

    def __init__(self, root: Path, name: str, environment: Environment) -> None:
        self._file = root / ".slipway" / "remote" / f"{name}-{environment.name}.json"

    def keep(self, build: str, inputs: str) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps({"build": build, "inputs": inputs}), encoding="utf-8")

    def forget(self) -> None:
        self._file.unlink(missing_ok=True)

    def take(self, builds: PublishBuilds, inputs: str, progress: Progress) -> Build | None:
        """Returns the build of the same inputs that was left; None if there is none."""
        try:
            kept = json.loads(self._file.read_bytes())
            identifier, same = kept["build"], kept["inputs"] == inputs
        except (OSError, ValueError, KeyError, TypeError):
            return None
        build = builds.find(identifier) if same else None
        if build is None or variable_of(build, INPUTS) != inputs:
            return None
        progress.note(f"The build {identifier} was started here before: joined.")
        return build


def _settings(environment: Environment) -> RemotePublishing:
    if environment.remote_publishing is None:
        name = environment.name
        raise UserError.of(
            Code.NO_PUBLISH_PROJECT,
            f"environment `{name}` has no `remote_publishing`",
            f"Add `remote_publishing: {{}}` to `{name}` in environments.yaml and run "
            f"`cdk deploy foundation -c env={name}`.",
        )
    return environment.remote_publishing


def _require_fit_for_a_build(
    project: Project, deployment: Deployment, settings: RemotePublishing
) -> None:
    """Raises `UserError` with every reason, located, for which a build could not publish this."""
    config, environment = deployment.config, deployment.environment
    weights = config.artifacts.weights if deployment.deploys_release else None
    problems: list[Problem] = []

    def refuse(code: Code, message: str, remedy: str, *field: str | int) -> None:
        problems.append(Problem(code, Kind.COMPATIBILITY, message, remedy, field))

    if weights is None or isinstance(weights, PathWeights):
        source = deployment.published_directory if weights is None else None
        path = weights.path if isinstance(weights, PathWeights) else source and source.path
        refuse(
            Code.NOT_FOR_A_BUILD,
            f"{path} is on this machine, and a build of the account gets no such files",
            "Publish without `--remote`, or name weights with `source: s3` or `source: hub`.",
            *(_WEIGHTS if source is None else source.field),
        )
    if package := PACKAGES.package_of(deployment.container):
        refuse(
            Code.NOT_FOR_A_BUILD,
            f"the container `{deployment.container}` is of the package {package}, and a build of "
            "the account has Slipway alone",
            "Publish without `--remote`, for example on an instance in the region.",
            *("serving", "container"),
        )
    if config.artifacts.isolated:
        refuse(
            Code.NOT_FOR_A_BUILD,
            "the build's role may not use the key of an isolated model",
            "Publish without `--remote`, for example on an instance in the region.",
            *("artifacts", "isolated"),
        )
    if isinstance(weights, S3Weights) and not _is_below(weights.uri, settings.weights):
        name = environment.name
        refuse(
            Code.WEIGHTS_NOT_ALLOWED,
            f"builds of `{name}` may not read {weights.uri}",
            f"Add it, or a prefix of it, to `remote_publishing.weights` of `{name}` in "
            f"environments.yaml and run `cdk deploy foundation -c env={name}`.",
            *(*_WEIGHTS, "uri"),
        )
    if isinstance(weights, HubWeights):
        problems += _disk_problems(project, deployment, settings.compute)
    if problems:
        with located_in(project.config(deployment.name, environment.name)):
            raise UserError(problems)


def _is_below(uri: str, prefixes: Sequence[str]) -> bool:
    # A bucket may be named without a slash, and its name may begin another's.
    whole = [f"{each.rstrip('/')}/" for each in (uri, *prefixes)]
    return whole[0].startswith(tuple(whole[1:]))


def _disk_problems(project: Project, deployment: Deployment, compute: str) -> list[Problem]:
    locked = project.lock(deployment.config.name).artifact(deployment)
    size_gb = deployment.config.artifacts.size_gb
    if locked is not None and locked.weights is not None:
        size_gb = locked.weights.size_bytes / 1e9
    disk_gb = build_disk_gb(compute)
    if size_gb is None or size_gb <= disk_gb:
        return []
    larger = build_disk_gb(_LARGEST)
    remedy = "Put the weights into S3 and name them with `source: s3`: those need no disk."
    if size_gb <= larger:
        remedy = f"Set `remote_publishing.compute` to {_LARGEST}, which has {larger} GB. {remedy}"
    return [
        Problem(
            Code.BUILD_DISK,
            Kind.COMPATIBILITY,
            f"the weights have {size_gb:.0f} GB, and a build of compute type {compute} has "
            f"{disk_gb} GB of disk",
            remedy,
            _WEIGHTS,
        )
    ]


def _inputs(source: Source, name: str, environment: Environment) -> str:
    text = json.dumps([source.digest, name, environment.name])
    return hashlib.sha256(text.encode()).hexdigest()


def _limits(deployed: BuildProject, environment: Environment, compiling: CompilePlan | None) -> str:
    minutes, region = deployed.time_limit_minutes, environment.region
    line = f"A build of compute type {deployed.compute} takes at most {minutes} minutes. "
    price = build_price_per_minute(deployed.compute, region)
    if environment.is_local:
        line += "It runs on this machine and costs nothing."
    elif price is None:
        line += f"No source gives the price of a minute in {region}."
    else:
        line += (
            f"It costs at most {price.usd * minutes:.2f} USD, at {price.usd:g} USD a minute "
            f"({price.as_of}; {price.source})."
        )
    if compiling is not None and not environment.is_local:
        line += f" A training job on {compiling.instance_type} costs its own."
    return line


def _send(access: Access, bucket: str, source: Source) -> None:
    """Puts the source into the bucket, unless it is there."""
    client = access.client("s3")
    try:
        with contextlib.suppress(client.exceptions.ClientError):
            client.head_object(Bucket=bucket, Key=source.key)
            return
        client.put_object(Bucket=bucket, Key=source.key, Body=source.archive)
    except (BotoCoreError, ClientError) as error:
        raise UserError.of(
            Code.BUILD_NOT_STARTED,
            f"the source of the build could not be sent to {bucket}: {error}",
            "Use credentials with the rights that `slipway iam NAME --remote` prints.",
        ) from None


def _result(access: Access, bucket: str, build: str) -> bytes | None:
    client, place = access.client("s3"), {"Bucket": bucket, "Key": result_key(build)}
    try:
        found = existing(client.get_object, "NoSuchKey", "404", **place)
    except ClientError as error:
        raise UserError.of(
            Code.BUILD_UNREACHABLE,
            f"the result of the build {build} could not be read: {error}",
            "Use credentials with the rights that `slipway iam NAME --remote` prints.",
        ) from None
    return None if found is None else bytes(found["Body"].read())
