"""Publishes a directory of this machine: hash, send what is missing, commit."""

from __future__ import annotations

from pathlib import Path

from slipway.access import Access
from slipway.publishing.manifest import Manifest
from slipway.publishing.progress import Progress
from slipway.publishing.s5cmd import Upload, upload
from slipway.publishing.store import ArtifactStore


def publish_directory(
    directory: Path, shown_as: str, store: ArtifactStore, access: Access, progress: Progress
) -> tuple[Manifest, int]:
    """Publishes every file of a directory as one artifact.

    It can be stopped at any moment: the manifest is written after every file, and the next run
    sends only what is missing.

    Args:
        directory: where the files are.
        shown_as: its name in messages.
        store: where they go.
        access: for s5cmd.
        progress: told of the upload.

    Returns:
        What the artifact holds, and how many bytes were sent.

    Raises:
        UserError: there is nothing to publish, or an upload failed.
    """
    manifest = Manifest.of(directory, shown_as)
    if store.holds(manifest.digest):
        progress.start(0)
        return manifest, 0
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
    return manifest, total
