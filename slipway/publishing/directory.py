"""Publishes a directory of this machine: hash, send what is missing, commit."""

from pathlib import Path

from slipway.access import Access
from slipway.publishing.batches import Folder, Upload
from slipway.publishing.hashes import KnownHashes, hash_each
from slipway.publishing.manifest import Manifest
from slipway.publishing.progress import Progress
from slipway.publishing.s5cmd import upload
from slipway.publishing.store import ArtifactStore


def publish_directory(
    directory: Path,
    shown_as: str,
    store: ArtifactStore,
    access: Access,
    progress: Progress,
    *,
    root: Path | None = None,
) -> tuple[Manifest, int]:
    """Publishes every file of a directory as one artifact.

    It can be stopped at any moment: the manifest is written after every file, and the next run
    sends only what is missing.

    Args:
        directory: the files to publish.
        shown_as: name of the directory in messages.
        store: receives the files.
        access: gives s5cmd its credentials.
        progress: shows the upload.
        root: the project, which keeps the hashes for the next publish; None for files that no
            other publish reads.

    Returns:
        What the artifact holds, and how many bytes were sent.

    Raises:
        UserError: there is nothing to publish, or an upload failed.
    """
    hashes = hash_each if root is None else KnownHashes.of(root, directory, progress)
    manifest = Manifest.of(directory, shown_as, hashes)
    return manifest, publish_files(directory, manifest, store, access, progress)


def publish_files(
    directory: Path, manifest: Manifest, store: ArtifactStore, access: Access, progress: Progress
) -> int:
    """Publishes the files of a directory under a digest.

    Args:
        directory: what is sent.
        manifest: the manifest that the digest was computed from. Its paths must match
            `directory`; the bytes differ where a file contains a value of the environment.
        store: receives the files.
        access: gives s5cmd its credentials.
        progress: shows the upload.

    Returns:
        How many bytes were sent.

    Raises:
        UserError: an upload failed.
    """
    if store.holds(manifest.digest):
        progress.start(0)
        return 0
    arrived = store.file_sizes(manifest.digest)
    sizes_bytes = {
        entry.path: (directory / entry.path).stat().st_size for entry in manifest.entries
    }
    missing = [
        Upload(directory / path, store.address(manifest.digest, path), size_bytes)
        for path, size_bytes in sizes_bytes.items()
        if arrived.get(path) != size_bytes
    ]
    total = sum(item.size_bytes for item in missing)
    progress.start(total)
    if missing:
        upload(
            missing,
            access=access,
            on_complete=lambda item: progress.advance(item.size_bytes),
            key_arn=store.key_arn,
            folder=Folder(directory, store.address(manifest.digest, ""))
            if len(missing) == len(manifest.entries)
            else None,
        )
    store.commit(manifest, sizes_bytes)
    return total
