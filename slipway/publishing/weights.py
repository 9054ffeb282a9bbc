"""Publishes a checkpoint from where it is: a directory, the Hugging Face Hub, S3."""

import shutil
from pathlib import Path

from slipway.config.sections.artifacts import HubWeights, PathWeights, S3Weights
from slipway.planning.lock import LockedPart
from slipway.publishing.directory import publish_directory
from slipway.publishing.file_set import FileSet, Select, require_whole
from slipway.publishing.hub import fetch
from slipway.publishing.manifest import Manifest
from slipway.publishing.objects import file_set, objects_under, publish_objects
from slipway.publishing.recipes import Recipe
from slipway.publishing.selection import SELECTION, left_out, wanted
from slipway.publishing.store import ArtifactStore
from slipway.s3_address import S3Address

# In the project, where a stopped download goes on.
_DOWNLOADS = Path(".slipway") / "hub"
# Weights are not made for any accelerator.
ANY = "any"


def publish_weights(
    weights: HubWeights | S3Weights | PathWeights,
    root: Path,
    store: ArtifactStore,
    select: Select | None = None,
) -> tuple[LockedPart, int]:
    """Publishes the weights that a config names.

    Without `select`, they are selected and checked whatever loads them. Returns the lock's part,
    and how many bytes moved into the bucket.
    """

    def selected(files: FileSet) -> FileSet:
        taken = require_whole(wanted(files, weights)) if select is None else select(files)
        if (line := left_out(taken)) is not None:
            store.progress.note(line)
        return taken

    if isinstance(weights, PathWeights):
        manifest, sent = publish_directory(
            root / weights.path, weights.path, store, root=root, select=selected
        )
        return part(manifest, source=weights.path), sent
    if isinstance(weights, S3Weights):
        manifest, sent = publish_objects(
            store.access.client("s3"),
            S3Address.of(weights.uri),
            store,
            fields=("artifacts", "weights", "uri"),
            select=selected,
        )
        return part(manifest, source=weights.uri), sent
    return _publish_commit(weights, root, store, selected)


def _publish_commit(
    weights: HubWeights, root: Path, store: ArtifactStore, select: Select
) -> tuple[LockedPart, int]:
    """Publishes one commit of the Hub; a commit never changes, so this is done once a bucket."""
    source = f"{weights.repository}@{weights.revision}"
    recipe = commit_recipe(weights)
    if (known := store.recall(recipe)) is not None:
        # Another container may have published it, which needs less.
        place = S3Address.of(store.address(known.digest, ""))
        with store.reached():
            select(file_set(store.client, place, objects_under(store.client, place)))
        store.progress.note(f"{source} is there already.")
        return known, 0
    directory = root / _DOWNLOADS / recipe.key[:16]
    files = fetch(weights, directory, store.progress, select=select)
    manifest, sent = publish_directory(files, source, store)
    made = part(manifest, source=source)
    store.remember(recipe, made)
    shutil.rmtree(directory)
    return made, sent


def commit_recipe(weights: HubWeights) -> Recipe:
    patterns = weights.allow_patterns
    return Recipe(
        {
            "repository": weights.repository,
            "revision": weights.revision,
            **({"allow_patterns": sorted(patterns)} if patterns else {"selection": SELECTION}),
        }
    )


def part(
    manifest: Manifest, *, source: str, target: str = ANY, compiler: str | None = None
) -> LockedPart:
    """Returns the lock's part of a published artifact.

    Without a target, it runs on anything.
    """
    return LockedPart(
        digest=manifest.digest,
        size_bytes=manifest.size_bytes,
        file_count=len(manifest.entries),
        source=source,
        target=target,
        compiler=compiler,
    )
