"""Selects the published parts that a deployment uses, or gives the reason that there are none.

LMI's model data is its `code` (serving.properties and a model.py). The container itself copies the
`weights`, or, if they were partitioned, `compiled`. With settings as variables the model data is
the `weights`, as it is for an image of the user's own. The model data of every other container is
`compiled`, or its sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.errors import Kind, Problem
from slipway.facts.instances import InstanceFacts
from slipway.planning.artifact_place import ArtifactPlace, artifact_place
from slipway.planning.lock import (
    Lock,
    LockedPart,
    has_code,
    inputs_digest,
    is_compiled,
    is_told_by_variables,
)
from slipway.planning.plan import ArtifactPlan
from slipway.planning.support import unpublishable
from slipway.planning.targets import wrong_target

# A prefix that no artifact can have (digests are hexadecimal) and every linter takes.
UNPUBLISHED = "unpublished"


@dataclass(frozen=True)
class Parts:
    """What SageMaker brings to the container, and what an LMI container copies itself, if any."""

    model_data: ArtifactPlan
    weights: ArtifactPlan | None


def any_source(config: ModelConfig) -> bool:
    """Returns whether the config names any files."""
    artifacts = config.artifacts
    return any((artifacts.sample, artifacts.release, artifacts.weights))


def has_source(config: ModelConfig, environment: Environment) -> bool:
    """Returns whether there is something to publish for the environment."""
    artifacts = config.artifacts
    if environment.artifacts == "sample":
        return artifacts.sample is not None
    return artifacts.release is not None or artifacts.weights is not None


def parts(
    config: ModelConfig,
    environment: Environment,
    instances: Sequence[InstanceFacts],
    lock: Lock,
    *,
    allow_unpublished: bool,
) -> Parts | Problem:
    """Returns the published parts, parts of an unpublished plan, or the problem to solve first.

    Args:
        config: a valid config.
        environment: deploys its sample or its release.
        instances: every type the endpoint may run on.
        lock: the model's published artifacts.
        allow_unpublished: whether a plan without a published artifact is allowed.
    """
    packaged, told = has_code(config, environment), is_told_by_variables(config, environment)
    locked = lock.artifact(config, environment) if has_source(config, environment) else None
    place = artifact_place(config, environment)
    mismatch: Problem | None = None
    if locked is not None and locked.inputs_digest == inputs_digest(config, environment.artifacts):
        as_it_is = locked.weights if config.serving.container == "custom" else None
        compiled = is_compiled(config, environment)
        weights = locked.compiled if compiled else locked.weights
        model_data = locked.code if packaged else locked.compiled or as_it_is
        if told:
            model_data = weights
        if compiled and locked.compiled is not None:
            mismatch = wrong_target(config, environment, instances, locked.compiled.target)
        whole = model_data is not None and (weights is not None or not packaged)
        if model_data is not None and whole and mismatch is None:
            return Parts(
                published_part(model_data, place),
                published_part(weights, place) if packaged and weights is not None else None,
            )
        locked = None
    if allow_unpublished:
        nothing = ArtifactPlan(
            place.bucket, UNPUBLISHED, 0, 0, "none", published=False, root=place.root
        )
        return Parts(nothing, nothing if packaged else None)
    return mismatch or _unpublished(config, environment, was_published=locked is not None)


def published_part(part: LockedPart, place: ArtifactPlace) -> ArtifactPlan:
    """Returns a part that was published to a place."""
    return ArtifactPlan(
        place.bucket,
        part.digest,
        part.size_bytes,
        part.file_count,
        part.target,
        published=True,
        root=place.root,
    )


def no_source(config: ModelConfig, environment: Environment) -> Problem:
    """Returns the problem of a config that names no files for what the environment deploys."""
    wanted, name = environment.artifacts, environment.name
    if wanted == "release":
        remedy = (
            "Add `artifacts.weights` with the checkpoint, add `artifacts.release` with the path of "
            "the compiled model and its target, or set `artifacts: sample` for that environment."
        )
    elif any_source(config):
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


def _unpublished(config: ModelConfig, environment: Environment, *, was_published: bool) -> Problem:
    wanted = environment.artifacts
    if not has_source(config, environment):
        return no_source(config, environment)
    for field, what in unpublishable(config):
        return Problem(
            Code.NOT_SUPPORTED_YET,
            Kind.STATE,
            f"the {wanted} was never published: {what} is not supported yet",
            "`-c allow-unpublished=true` synthesises the deployment for reading.",
            field,
        )
    state = (
        f"the config changed after the {wanted} was published"
        if was_published
        else f"the {wanted} was never published"
    )
    return Problem(
        Code.CONFIG_CHANGED if was_published else Code.NEVER_PUBLISHED,
        Kind.STATE,
        state,
        f"Run `slipway publish {config.name} --env {environment.name}` and commit the lock file "
        f"model_configs/{config.name}.lock.json.",
        ("artifacts", wanted),
    )
