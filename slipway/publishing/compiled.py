"""Publishes what a training job makes of published weights."""

import hashlib
from typing import Any

from slipway.config.environments import Environment
from slipway.errors import UserError
from slipway.planning.artifact_place import ArtifactPlace
from slipway.planning.artifacts import published_part
from slipway.planning.compiling import CompilePlan
from slipway.planning.lock import LockedPart
from slipway.planning.plan import DeploymentPlan
from slipway.publishing.file_set import FileSet
from slipway.publishing.objects import objects_under, publish_objects
from slipway.publishing.packaging import ACCURACY_FILE, Inspection, Package, publish_package
from slipway.publishing.recipes import Recipe
from slipway.publishing.store import ArtifactStore
from slipway.publishing.training import CompileJob, TrainingJobs, parameter, require_image
from slipway.publishing.weights import part
from slipway.s3_address import S3Address


def publish_compiled(
    plan: CompilePlan,
    deployment: DeploymentPlan,
    weights: LockedPart,
    store: ArtifactStore,
    inspect: Inspection | None,
) -> tuple[LockedPart, int]:
    """Compiles published weights, once for the same inputs, and publishes the result.

    It can be stopped at any moment: a job that was started goes on, and the next run takes over.

    `inspect` refuses a job's output that must not be published, and returns its accuracy. Returns
    the lock's part, and how many bytes moved into the artifact.
    """
    recipe = compile_recipe(plan, weights)
    if (known := store.recall(recipe)) is not None:
        store.progress.note(f"The same was compiled before, by {known.source}.")
        return known, 0
    place, access, environment = store.place, store.access, deployment.environment
    # Before the job, which reads them.
    settings, sent = _publish_settings(plan, store)
    role_arn = parameter(access, environment, place.compile_role_parameter, place.stack_id)
    key_arn = parameter(access, environment, place.key_parameter, place.stack_id)
    if not environment.is_local:
        require_image(access, plan, environment)
    job = CompileJob(
        model=deployment.config.name,
        key=_job_key(recipe, environment, place),
        plan=plan,
        weights_uri=published_part(weights, place).s3_uri,
        settings_uri=published_part(settings, place).s3_uri if settings else None,
        output_uri=f"s3://{place.bucket}/{place.output_prefix}",
        role_arn=role_arn,
        key_arn=key_arn,
        tags=deployment.tags,
    )
    s3 = access.client("s3")

    def holds_output(uri: str) -> bool:
        try:
            return bool(objects_under(s3, S3Address.of(uri)))
        except UserError:
            return False

    name, uri = TrainingJobs(access, store.progress).finish(job, holds_output)
    accuracy = inspect(s3, name, uri) if inspect is not None else None
    manifest, copied = publish_objects(
        s3, S3Address.of(uri), store, select=None if accuracy is None else _without_report
    )
    made = part(manifest, source=f"training job {name}", target=plan.target, compiler=plan.compiler)
    made = made.model_copy(update={"accuracy": accuracy})
    store.remember(recipe, made)
    return made, sent + copied


def _without_report(files: FileSet) -> FileSet:
    """Leaves out what was measured, so that the same input gives the same digest anywhere."""
    return files.only(files.sizes_bytes.keys() - {ACCURACY_FILE})


def _job_key(recipe: Recipe, environment: Environment, place: ArtifactPlace) -> str:
    """Returns the key that distinguishes jobs in an account, where others may compile the same.

    Another project may compile the same, and so may the same model before it is isolated. An
    isolated model's publisher may not read the output of that job.
    """
    if not environment.project and not place.is_isolated:
        return recipe.key
    text = f"{environment.project}/{place.root}{recipe.key}"
    return hashlib.sha256(text.encode()).hexdigest()


def compile_recipe(plan: CompilePlan, weights: LockedPart) -> Recipe:
    """Returns the inputs that decide the result, without the job's place and time limit."""
    inputs: dict[str, Any] = {
        "weights": weights.digest,
        "image": f"{plan.image.repository}:{plan.image.tag}",
        "hyperparameters": dict(plan.hyperparameters),
    }
    if plan.settings:
        # A job that is told by hyperparameters has its target there.
        inputs["target"] = plan.target
        inputs["arguments"] = list(plan.arguments)
        inputs["settings"] = {
            path: hashlib.sha256(content).hexdigest() for path, content in plan.settings.items()
        }
    return Recipe(inputs)


def _publish_settings(plan: CompilePlan, store: ArtifactStore) -> tuple[LockedPart | None, int]:
    """Publishes what a job is told in files, where its role may read: as an artifact."""
    if not plan.settings:
        return None, 0
    return publish_package(Package(plan.settings, source="the config"), store)
