"""Publishes a model's artifact: its files, or what is compiled from its weights; then the lock."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from slipway.access import Access
from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.config.load import LoadedConfig
from slipway.config.sections.artifacts import HubWeights, PathWeights, S3Weights
from slipway.directories import find_escapes
from slipway.errors import Problem, UserError
from slipway.planning.artifact_place import artifact_place
from slipway.planning.artifacts import has_source, no_source
from slipway.planning.compiling import CompilePlan
from slipway.planning.deployment import Deployment
from slipway.planning.families import deployment_of
from slipway.planning.lock import Lock, LockedArtifact, LockedPart, inputs_digest
from slipway.planning.plan import DeploymentPlan
from slipway.project import Project
from slipway.publishing.adapters import publish_adapter
from slipway.publishing.compiled import publish_compiled
from slipway.publishing.directory import publish_directory
from slipway.publishing.families import PACKAGING
from slipway.publishing.file_set import FileSet, require_whole
from slipway.publishing.images import PromotedImage
from slipway.publishing.packaging import publish_package
from slipway.publishing.progress import Progress
from slipway.publishing.selection import wanted
from slipway.publishing.store import ArtifactStore
from slipway.publishing.training import parameter
from slipway.publishing.weights import part, publish_weights
from slipway.publishing.whole_files import one_at_a_time, replace_file


@dataclass(frozen=True)
class PublishedParts:
    digest: str
    size_bytes: int
    source: str
    target: str


@dataclass(frozen=True)
class Published:
    """What a publish did.

    Args:
        digest: content address of the model data.
        source: where it came from: a directory, an address, or the training job that compiled it.
        target: what it runs on.
        weights_digest: content address of the weights that it was compiled from, or that it
            has the container load; None where there are none beside it.
        uploaded_bytes: what was sent or copied this time; 0 where all of it was there.
        parts: what the container loads in place of the weights; None where it loads those.
        promoted_from: the environment that it was copied from; None where it was published.
    """

    digest: str
    size_bytes: int
    file_count: int
    source: str
    target: str
    weights_digest: str | None
    uploaded_bytes: int
    lock_changed: bool
    parts: PublishedParts | None = None
    promoted_from: str | None = None
    image: PromotedImage | None = None
    accuracy: Mapping[str, float] | None = None


def publish(
    project: Project,
    name: str,
    environment: Environment,
    access: Access,
    progress: Progress,
    *,
    verify: bool = False,
) -> Published:
    """Publishes one model to one environment.

    It can be stopped at any moment. The manifest is written after every file, and the lock after
    the manifest. The next run does only what is missing. A training job that was started continues.
    With `verify`, every byte of the artifact in the bucket is read.
    """
    made = make(project, name, environment, access, progress, verify=verify)
    return record(project, project.deployment(name, environment), made)


@dataclass(frozen=True)
class Made:
    """An artifact in the bucket, before the lock has it; 0 bytes moved if all of it was there."""

    locked: LockedArtifact
    moved_bytes: int


def make(
    project: Project,
    name: str,
    environment: Environment,
    access: Access,
    progress: Progress,
    *,
    verify: bool = False,
) -> Made:
    """Publishes one model's artifact to one environment, and leaves the lock alone."""
    # Before anything moves: a job for the wrong GPU would be paid for.
    deployment, compiling = check_publishable(project, name, environment)
    with located_in(project.config(name, environment.name)):
        store = opened_store(deployment, access, progress, verify=verify)
        return Made(*_publish_parts(project, deployment, compiling, store))


def check_publishable(
    project: Project, name: str, environment: Environment
) -> tuple[Deployment, tuple[CompilePlan, DeploymentPlan] | None]:
    """Returns the deployment and what `compile_job` does, checked without the account.

    Raises `UserError` with every reason for which nothing can be published, located.
    """
    loaded = project.config(name, environment.name)
    deployment = deployment_of(loaded.config, environment, loaded.variant)
    with located_in(loaded):
        require_publishable(project, deployment)
        return deployment, compile_job(project, deployment)


def record(
    project: Project,
    deployment: Deployment,
    made: Made,
    *,
    promoted_from: str | None = None,
) -> Published:
    """Writes an artifact into the lock; returns what the publish did."""
    locked = made.locked
    weights = locked.weights
    model_data = locked.code or locked.compiled or weights
    if model_data is None:
        raise ValueError(f"{deployment.config.name}: nothing was published")
    # An adapter's archive has its weights.
    has_both = weights != model_data and locked.lora_rank is None
    return Published(
        digest=model_data.digest,
        size_bytes=model_data.size_bytes,
        file_count=model_data.file_count,
        source=model_data.source,
        target=model_data.target,
        weights_digest=weights.digest if weights and has_both else None,
        uploaded_bytes=made.moved_bytes,
        lock_changed=_write_lock(project, deployment, locked),
        parts=_parts(locked),
        promoted_from=promoted_from,
        accuracy=model_data.accuracy.model_dump() if model_data.accuracy else None,
    )


def opened_store(
    deployment: Deployment,
    access: Access,
    progress: Progress,
    *,
    verify: bool = False,
) -> ArtifactStore:
    """Returns the model's artifacts; raises `UserError` without the bucket, or without its key.

    With `verify`, every byte is read, whatever S3 says of it.
    """
    environment = deployment.environment
    place = artifact_place(deployment.config, environment)
    store = ArtifactStore(access, environment, place, progress, verify=verify)
    store.require_bucket()
    if place.is_isolated:
        store.key_arn = parameter(access, environment, place.key_parameter, place.stack_id)
    return store


def planned_job(
    project: Project, name: str, environment: Environment
) -> tuple[CompilePlan | None, HubWeights | S3Weights | PathWeights | None]:
    """Returns the training job that publishing a model would run, and the weights it would fetch.

    Each is None if publishing does not need it: it then publishes finished files.
    """
    deployment = project.deployment(name, environment)
    found = compile_job(project, deployment)
    weights = deployment.config.artifacts.weights if deployment.deploys_release else None
    return (None if found is None else found[0]), weights


def _parts(locked: LockedArtifact) -> PublishedParts | None:
    compiled = locked.compiled
    if locked.code is None or compiled is None:
        return None
    return PublishedParts(compiled.digest, compiled.size_bytes, compiled.source, compiled.target)


@contextmanager
def located_in(loaded: LoadedConfig) -> Iterator[None]:
    """Fills in the places of problems that are about a field; others are about the account."""
    try:
        yield
    except UserError as error:
        problems = error.problems
        fields = [problem for problem in problems if problem.field and problem.location is None]
        rest = [problem for problem in problems if problem not in fields]
        raise UserError([*(loaded.locate(fields) if fields else ()), *rest]) from None


def require_publishable(project: Project, deployment: Deployment) -> None:
    """Raises `UserError` with everything that is against publishing the model."""
    refused = [] if has_source(deployment) else [no_source(deployment)]
    refused += project.findings(deployment).problems
    if deployment.config.adapter_of is not None:
        refused += project.host_problems(deployment, Lock())
    refused += find_escapes(project.root, deployment.config, deployment.published_directory)
    if refused:
        raise UserError(refused)


def compile_job(
    project: Project, deployment: Deployment
) -> tuple[CompilePlan, DeploymentPlan] | None:
    """Returns the training job and the plan of the deployment; None if nothing is compiled."""
    if not deployment.is_compiled:
        return None
    planned = project.plan(deployment.name, deployment.environment, allow_unpublished=True)
    plan = deployment.compile_plan(planned.image)
    if isinstance(plan, Problem):
        raise UserError([plan])
    return plan, planned


def _publish_parts(
    project: Project,
    deployment: Deployment,
    compiling: tuple[CompilePlan, DeploymentPlan] | None,
    store: ArtifactStore,
) -> tuple[LockedArtifact, int]:
    """Publishes what the environment deploys; returns it and how many bytes moved."""
    if deployment.config.adapter_of is not None:
        return publish_adapter(project, deployment, store)
    inputs, weights = inputs_digest(deployment), deployment.config.artifacts.weights
    if not deployment.deploys_release or weights is None:
        files, sent = _publish_files(project, deployment, store)
        return LockedArtifact(inputs_digest=inputs, compiled=files), sent
    # Before anything moves: weights may take hours.
    packaging = PACKAGING[deployment.container]
    own_files = packaging.read(deployment, project.root)

    def select(files: FileSet) -> FileSet:
        taken = wanted(files, weights, loads_any=packaging.loads_any(deployment))
        _require_object(require_whole(taken, packaging.needs(deployment)), deployment)
        packaging.check_adapters(deployment, taken)
        if deployment.configured_by_environment:
            packaging.check_weights(taken.sizes_bytes)
        return taken

    checkpoint, sent = publish_weights(weights, project.root, store, select)
    locked = LockedArtifact(inputs_digest=inputs, weights=checkpoint)
    if compiling is not None:
        compiled, copied = publish_compiled(
            *compiling, checkpoint, store, packaging.inspection(deployment)
        )
        locked, sent = locked.model_copy(update={"compiled": compiled}), sent + copied
    package = packaging.package(deployment, own_files, (locked.compiled or checkpoint).digest)
    if package is not None:
        if deployment.config.artifacts.compile is not None and compiling is None:
            store.progress.note(
                "The embedded AWS has no GPU to partition on: the weights are published as they "
                "are."
            )
        code, code_bytes = publish_package(package, store)
        locked, sent = locked.model_copy(update={"code": code}), sent + code_bytes
    return locked, sent


def _require_object(files: FileSet, deployment: Deployment) -> FileSet:
    """Returns the files; raises `UserError` if the one that is the model data is not among them."""
    name = deployment.model_data_object
    if name is None or name in files.sizes_bytes:
        return files
    raise UserError.of(
        Code.MODEL_DATA_OBJECT,
        f"the artifact has no file {name}",
        f"Name one of {', '.join(sorted(files.sizes_bytes)[:5])}, or remove `model_data_object`.",
        field=("serving", "model_data_object"),
    )


def _publish_files(
    project: Project, deployment: Deployment, store: ArtifactStore
) -> tuple[LockedPart, int]:
    """Publishes a sample, a release that was compiled already, or a repository of models."""
    source = deployment.published_directory
    if source is None:
        name, environment = deployment.config.name, deployment.environment.name
        raise ValueError(f"{name} has nothing to publish to {environment}")
    path, needs = source.path, PACKAGING[deployment.container].needs(deployment)
    manifest, sent = publish_directory(
        project.root / path,
        path,
        store,
        root=project.root,
        select=lambda files: _require_object(require_whole(files, needs, source.field), deployment),
        packs=deployment.packs_archive,
    )
    return part(manifest, source=path, target=source.target), sent


def _write_lock(project: Project, deployment: Deployment, locked: LockedArtifact) -> bool:
    name, scratch = deployment.config.name, project.root / ".slipway"
    # A publish to another environment writes another entry of the same file.
    with one_at_a_time(scratch / "locks" / name):
        old = project.lock(name)
        new = old.with_artifact(deployment, locked)
        if new == old:
            return False
        # Not beside the lock, where git would show what a kill leaves.
        replace_file(project.lock_path(name), new.render(), scratch=scratch)
    return True
