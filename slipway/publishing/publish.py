"""Publishes a model's artifact: hash, upload what is missing, commit, write the lock."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from slipway.access import Access
from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.errors import Kind, Problem, UserError
from slipway.planning.lock import LockedArtifact, LockedPart, inputs_digest
from slipway.planning.support import unpublishable, unsupported
from slipway.project import Project
from slipway.publishing.manifest import Manifest
from slipway.publishing.s5cmd import Upload, upload
from slipway.publishing.store import ArtifactStore


class Progress(Protocol):
    """Where progress is shown."""

    def start(self, total_bytes: int) -> None:
        """Says how much there is to send."""

    def advance(self, size_bytes: int) -> None:
        """Says that so much more has arrived."""


@dataclass(frozen=True)
class Published:
    """What a publish did.

    Args:
        digest: the artifact's content address.
        size_bytes: its size.
        file_count: its files.
        uploaded_bytes: what was sent this time; 0 where all of it was there.
        lock_changed: whether there is something to commit.
    """

    digest: str
    size_bytes: int
    file_count: int
    uploaded_bytes: int
    lock_changed: bool


def publish(
    project: Project, name: str, environment: Environment, access: Access, progress: Progress
) -> Published:
    """Publishes one model to one environment.

    It can be stopped at any moment: the manifest is written after every file, the lock after the
    manifest, and the next run sends only what is missing.

    Raises:
        UserError: the config is wrong, the foundation is not there, or an upload failed.
    """
    loaded = project.config(name, environment.name)
    try:
        source, target = _source(loaded.config, environment)
    except UserError as error:
        raise UserError(loaded.locate(error.problems)) from None
    store = ArtifactStore(access.client("s3"), environment)
    store.require_bucket()
    directory = project.root / source
    manifest = Manifest.of(directory, source)
    sent = _upload_missing(manifest, directory, store, access, progress)
    locked = LockedArtifact(
        inputs_digest=inputs_digest(loaded.config, environment.artifacts),
        compiled=LockedPart(
            digest=manifest.digest,
            size_bytes=manifest.size_bytes,
            file_count=len(manifest.entries),
            source=source,
            target=target,
        ),
    )
    return Published(
        digest=manifest.digest,
        size_bytes=manifest.size_bytes,
        file_count=len(manifest.entries),
        uploaded_bytes=sent,
        lock_changed=_write_lock(project, name, environment, locked),
    )


def _source(config: ModelConfig, environment: Environment) -> tuple[str, str]:
    """Returns the directory to publish and what it was compiled for."""
    refused = list(unsupported(config))
    refused += [
        Problem(
            Kind.COMPATIBILITY,
            f"{what} is not supported yet",
            "`-c allow-unpublished=true` synthesises the deployment for reading.",
            field,
        )
        for field, what in unpublishable(config, environment)
    ]
    if refused:
        raise UserError(refused)
    sample, release = config.artifacts.sample, config.artifacts.release
    if environment.artifacts == "sample" and sample is not None:
        # A sample is served by the containers' CPU back ends.
        return sample.path, "cpu"
    if environment.artifacts == "release" and release is not None:
        return release.path, release.target
    wanted = environment.artifacts
    raise UserError(
        [
            Problem(
                Kind.COMPATIBILITY,
                f"environment `{environment.name}` deploys the {wanted}, and there is none",
                f"Add `artifacts.{wanted}` with the path of the model's files.",
                ("artifacts",),
            )
        ]
    )


def _upload_missing(
    manifest: Manifest,
    directory: Path,
    store: ArtifactStore,
    access: Access,
    progress: Progress,
) -> int:
    if store.holds(manifest.digest):
        progress.start(0)
        return 0
    arrived = store.file_sizes(manifest.digest)
    missing = [
        Upload(directory / entry.path, store.address(manifest.digest, entry.path), entry.size_bytes)
        for entry in manifest.entries
        if arrived.get(entry.path) != entry.size_bytes
    ]
    total = sum(item.size_bytes for item in missing)
    progress.start(total)
    if missing:
        upload(
            missing,
            environment=access.process_environment(),
            on_complete=lambda item: progress.advance(item.size_bytes),
        )
    store.commit(manifest)
    return total


def _write_lock(
    project: Project, name: str, environment: Environment, locked: LockedArtifact
) -> bool:
    old = project.lock(name)
    new = old.model_copy(update={environment.artifacts: locked})
    if new == old:
        return False
    path = project.lock_path(name)
    # Replaced in one step: a reader, or a kill, sees the old lock or the new one. Not beside the
    # lock, where git would show what a kill leaves.
    scratch = project.root / ".slipway"
    scratch.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", dir=scratch, prefix=f"{path.name}.", delete=False, encoding="utf-8"
    ) as file:
        file.write(new.render())
    temporary = Path(file.name)
    temporary.chmod(0o644)
    temporary.replace(path)
    return True
