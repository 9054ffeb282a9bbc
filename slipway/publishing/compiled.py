"""Publishes what a training job makes of published weights."""

from __future__ import annotations

from slipway.access import Access
from slipway.config.environments import Environment
from slipway.errors import UserError
from slipway.planning.compiling import OUTPUT_PREFIX, CompilePlan
from slipway.planning.lock import LockedPart
from slipway.planning.plan import ArtifactPlan, DeploymentPlan
from slipway.publishing.objects import ObjectPrefix, objects_under, publish_objects
from slipway.publishing.progress import Progress
from slipway.publishing.recipes import Recipe
from slipway.publishing.store import ArtifactStore
from slipway.publishing.training import CompileJob, TrainingJobs, parameter, require_image
from slipway.publishing.weights import part


def publish_compiled(
    plan: CompilePlan,
    deployment: DeploymentPlan,
    weights: LockedPart,
    *,
    environment: Environment,
    store: ArtifactStore,
    access: Access,
    progress: Progress,
) -> tuple[LockedPart, int]:
    """Compiles published weights, once for the same inputs, and publishes the result.

    It can be stopped at any moment: a job that was started goes on, and the next run takes over.

    Args:
        plan: the training job.
        deployment: what it is for: names and tags.
        weights: the published checkpoint.
        environment: where.
        store: its artifacts.
        access: its account.
        progress: told of it.

    Returns:
        The lock's part, and how many bytes moved into the artifact.

    Raises:
        UserError: the foundation or the image is missing, or the job failed.
    """
    recipe = _recipe(plan, weights)
    if (known := store.recall(recipe)) is not None:
        progress.note(f"The same was compiled before, by {known.source}.")
        return known, 0
    bucket = environment.artifact_bucket
    role_arn = parameter(access, environment.name, "compile-role-arn")
    key_arn = parameter(access, environment.name, "artifact-key-arn")
    if not environment.is_local:
        require_image(access, plan, environment.name)
    job = CompileJob(
        model=deployment.name,
        key=recipe.key,
        plan=plan,
        weights_uri=_address(bucket, weights),
        output_uri=f"s3://{bucket}/{OUTPUT_PREFIX}",
        role_arn=role_arn,
        key_arn=key_arn,
        tags=deployment.tags,
    )
    s3 = access.client("s3")

    def holds_output(uri: str) -> bool:
        try:
            return bool(objects_under(s3, ObjectPrefix(uri)))
        except UserError:
            return False

    name, uri = TrainingJobs(access, progress).finish(job, holds_output)
    manifest, copied = publish_objects(s3, ObjectPrefix(uri), store, progress)
    made = part(manifest, source=f"training job {name}", target=plan.target, compiler=plan.compiler)
    store.remember(recipe, made)
    return made, copied


def _recipe(plan: CompilePlan, weights: LockedPart) -> Recipe:
    """What decides the result: neither where the job runs nor how long it may take."""
    return Recipe(
        {
            "weights": weights.digest,
            "image": f"{plan.image.repository}:{plan.image.tag}",
            "hyperparameters": dict(plan.hyperparameters),
        }
    )


def _address(bucket: str, weights: LockedPart) -> str:
    return ArtifactPlan(
        bucket, weights.digest, weights.size_bytes, weights.file_count, weights.target, True
    ).s3_uri
