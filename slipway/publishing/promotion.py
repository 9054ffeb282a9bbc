"""Promotes a published artifact: another environment gets the very bytes that one has tested.

The files are copied by digest. An LMI package contains the bucket's name, so it is rendered for the
target, from the same settings and under the same digest.
"""

from collections.abc import Mapping
from dataclasses import replace

from slipway.access import Access
from slipway.config.environments import Environment
from slipway.config.sections.artifacts import HubWeights
from slipway.errors import UserError
from slipway.planning.artifact_place import artifact_place
from slipway.planning.deployment import Deployment
from slipway.planning.families import deployment_of
from slipway.planning.lock import LockedArtifact
from slipway.planning.promotion import package_changed, promotable, same_environment
from slipway.project import Project
from slipway.publishing.compiled import compile_recipe
from slipway.publishing.families import PACKAGING
from slipway.publishing.images import promote_image
from slipway.publishing.packaging import Package, publish_package
from slipway.publishing.progress import Progress
from slipway.publishing.publish import (
    Made,
    Published,
    compile_job,
    located_in,
    opened_store,
    record,
    require_publishable,
)
from slipway.publishing.recipes import Recipe
from slipway.publishing.store import ArtifactStore
from slipway.publishing.verified_copies import SourceStore, copy_artifact
from slipway.publishing.weights import commit_recipe


def promote(
    project: Project,
    name: str,
    environment: Environment,
    access: Access,
    progress: Progress,
    *,
    source: Environment,
    source_access: Access,
    within_s3: bool,
    verify: bool = False,
    with_image: bool = False,
) -> Published:
    """Copies one model's artifact from another environment.

    It can be stopped at any moment. The manifest is written after every file, and the lock after
    the manifest. The next run does only what is missing. `within_s3` says whether the clients of
    `access` may read the source's bucket too. With `verify`, every byte of the copy is read. With
    `with_image`, the image that serves the model is copied too, before the lock changes.
    """
    if source.name == environment.name:
        raise UserError([same_environment(name, source.name)])
    loaded = project.config(name, environment.name)
    tested_config = project.config(name, source.name).config
    target = deployment_of(loaded.config, environment, loaded.variant)
    tested = deployment_of(tested_config, source, loaded.variant)
    with located_in(loaded):
        require_publishable(project, target)
        # Every incompatibility of the deployment, before anything moves.
        plan = project.plan(name, environment, allow_unpublished=True)
        locked = promotable(tested, target, project.lock(name))
        package = _package(project, target, locked, source.name)
        image = None
        # Beside an image of Slipway, a variant may have one of AWS, of which there is no copy.
        if with_image and (loaded.variant is None or plan.image.base is not None):
            image = promote_image(
                project, name, environment, access, progress,
                source=source, source_access=source_access,
            )  # fmt: skip
        store = opened_store(target, access, progress, verify=verify)
        place = artifact_place(tested_config, source)
        origin = SourceStore(source_access, source, place, progress)
        moved_bytes = 0
        for part in filter(None, (locked.weights, locked.compiled)):
            moved_bytes += copy_artifact(
                part.digest,
                origin,
                store,
                within_s3=within_s3,
                remedy=f"Run `slipway publish {name} --env {source.name}`, and test again.",
            )
        if package is not None:
            _, sent_bytes = publish_package(package, store)
            moved_bytes += sent_bytes
        _take_recipes(_recipes(project, target, locked), origin, store)
    published = record(project, target, Made(locked, moved_bytes), promoted_from=source.name)
    return replace(published, image=image)


def _package(
    project: Project, target: Deployment, locked: LockedArtifact, source: str
) -> Package | None:
    """Returns the package of code for the target; None if the artifact has none.

    Raises `UserError` if this checkout makes another package than the locked one.
    """
    loads = locked.compiled or locked.weights
    if locked.code is None or loads is None:
        return None
    packaging = PACKAGING[target.container]
    own_files = packaging.read(target, project.root)
    package = packaging.package(target, own_files, loads.digest)
    if package is None or package.digest != locked.code.digest:
        raise UserError([package_changed(target.config.name, source)])
    return package


def _recipes(project: Project, target: Deployment, locked: LockedArtifact) -> Mapping[str, Recipe]:
    """Returns the recipe of each part that another publish to the target would make again."""
    recipes = {}
    weights = target.config.artifacts.weights
    if locked.weights is not None and isinstance(weights, HubWeights):
        recipes[locked.weights.digest] = commit_recipe(weights)
    job = compile_job(project, target)
    if job is not None and locked.weights is not None and locked.compiled is not None:
        recipes[locked.compiled.digest] = compile_recipe(job[0], locked.weights)
    return recipes


def _take_recipes(recipes: Mapping[str, Recipe], origin: SourceStore, store: ArtifactStore) -> None:
    """Copies records of inputs, so that a later publish to the target builds nothing again."""
    for digest, recipe in recipes.items():
        made = origin.recorded(recipe)
        # The source may have built from other inputs since, such as another compiler image.
        if made is not None and made.digest == digest and store.recorded(recipe) != made:
            store.remember(recipe, made)
