"""Selects the published parts that a deployment uses, or gives the reason that there are none.

LMI's model data is its `code` (serving.properties and a model.py). The container itself copies the
`weights`, or, if they were partitioned, `compiled`. With settings as variables the model data is
the `weights`, as it is for an image of the user's own. The model data of every other container is
`compiled`, or its sample.
"""

from dataclasses import dataclass, replace

from slipway.codes.code import Code
from slipway.config.names import CI, ENVIRONMENTS_FILE
from slipway.errors import Kind, Problem
from slipway.planning.artifact_place import MODEL_ARCHIVE, ArtifactPlace, artifact_place
from slipway.planning.deployment import Deployment
from slipway.planning.lock import Lock, LockedPart, is_current
from slipway.planning.plan import ArtifactPlan

# A prefix that no artifact can have (digests are hexadecimal) and every linter takes.
UNPUBLISHED = "unpublished"


@dataclass(frozen=True)
class Parts:
    """What SageMaker brings to the container, and what an LMI container copies itself, if any."""

    model_data: ArtifactPlan
    weights: ArtifactPlan | None


def any_source(deployment: Deployment) -> bool:
    """Returns whether the config names any files."""
    artifacts = deployment.config.artifacts
    named = any((artifacts.sample, artifacts.release, artifacts.weights))
    return named or deployment.published_directory is not None


def has_source(deployment: Deployment) -> bool:
    """Returns whether there is something to publish for the environment."""
    has_weights = deployment.deploys_release and deployment.config.artifacts.weights is not None
    return has_weights or deployment.published_directory is not None


def parts(deployment: Deployment, lock: Lock, *, allow_unpublished: bool) -> Parts | Problem:
    """Returns the published parts, parts of an unpublished plan, or the problem to solve first."""
    packaged, compiled = deployment.has_code, deployment.is_compiled
    locked = lock.artifact(deployment) if has_source(deployment) else None
    place = artifact_place(deployment.config, deployment.environment)
    mismatch: Problem | None = None
    if compiled and locked is not None and locked.compiled is not None:
        mismatch = _wrong_target(deployment, locked.compiled.target)
    if locked is not None and mismatch is None and is_current(locked, deployment):
        weights = locked.compiled if compiled else locked.weights
        model_data = locked.code if packaged else locked.compiled
        if deployment.configured_by_environment:
            model_data = weights
        elif model_data is None and not packaged and deployment.serves_plain_weights:
            model_data = locked.weights
        whole = model_data is not None and (weights is not None or not packaged)
        if model_data is not None and whole:
            return Parts(
                _as_served(published_part(model_data, place), deployment),
                published_part(weights, place) if packaged and weights is not None else None,
            )
        locked = None
    if allow_unpublished:
        nothing = ArtifactPlan(
            place.bucket, UNPUBLISHED, 0, 0, "none", published=False, root=place.root
        )
        return Parts(_as_served(nothing, deployment), nothing if packaged else None)
    return mismatch or _unpublished(deployment, was_published=locked is not None)


def _as_served(part: ArtifactPlan, deployment: Deployment) -> ArtifactPlan:
    packed = deployment.packs_archive
    return replace(
        part,
        object_name=MODEL_ARCHIVE if packed else deployment.model_data_object,
        is_archive=packed,
        accepts_eula=deployment.config.artifacts.accept_eula,
    )


def published_part(part: LockedPart, place: ArtifactPlace) -> ArtifactPlan:
    facts = (part.digest, part.size_bytes, part.file_count, part.target)
    return ArtifactPlan(place.bucket, *facts, published=True, root=place.root)


def no_source(deployment: Deployment) -> Problem:
    wanted, name = deployment.environment.artifacts, deployment.environment.name
    if wanted == "release":
        remedy = (
            "Add `artifacts.weights` with the checkpoint, add `artifacts.release` with the path of "
            "the compiled model and its target, or set `artifacts: sample` for that environment."
        )
    elif any_source(deployment):
        remedy = (
            f"Set `artifacts: release` for `{name}` in environments.yaml to deploy the model "
            "itself, or add `artifacts.sample` with the path of a small model."
        )
    else:
        remedy = (
            "Add `artifacts.sample` with the path of a small model, or choose an environment that "
            "deploys releases."
        )
    message = f"environment `{name}` deploys the {wanted}, and there is none"
    return Problem(Code.NO_MODEL, Kind.STATE, message, remedy, ("artifacts",))


def _unpublished(deployment: Deployment, *, was_published: bool) -> Problem:
    wanted = deployment.environment.artifacts
    if not has_source(deployment):
        return no_source(deployment)
    if deployment.variant in deployment.config.endpoint.instances:
        # A model of fallback types has the name of its first one.
        return Problem(
            Code.POOL_LACKS_MODEL,
            Kind.STATE,
            f"the lock has no {wanted} of this config for {deployment.variant}, which has a model "
            "of its own in `model_overrides`",
            _publish_again(deployment),
            ("endpoint", "instances", 0),
        )
    code, state = Code.NEVER_PUBLISHED, f"the {wanted} was never published"
    if was_published:
        code, state = Code.CONFIG_CHANGED, f"the config changed after the {wanted} was published"
    return Problem(code, Kind.STATE, state, _publish_again(deployment), ("artifacts", wanted))


def _publish_again(deployment: Deployment) -> str:
    name = deployment.config.name
    if deployment.environment.name == CI:
        return (
            f"`{CI}` is nobody's account: `--allow-unpublished` plans for it. To publish, add an "
            f"environment with your account to {ENVIRONMENTS_FILE}, and run `slipway publish "
            f"{name} --env` with its name."
        )
    return (
        f"Run `slipway publish {name} --env {deployment.environment.name}` and commit the lock "
        f"file model_configs/{name}.lock.json."
    )


def _wrong_target(deployment: Deployment, target: str) -> Problem | None:
    wanted = deployment.compile_target
    if wanted is None or wanted == target:
        return None
    has = f"{deployment.instance.name} needs {wanted}"
    if deployment.environment.is_local:
        has = "the embedded AWS has no accelerator"
    return Problem(
        Code.LOCKED_FOR_ANOTHER_TARGET,
        Kind.STATE,
        f"the release in the lock was compiled for {target}, and {has}",
        _publish_again(deployment),
        ("artifacts", "compile"),
    )
