"""Publishes a directory of this machine: hash, send what is missing, commit."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from slipway.access import Access
from slipway.codes.code import Code
from slipway.errors import Kind, Problem, UserError
from slipway.publishing.file_set import Check, directory_files
from slipway.publishing.hashes import KnownHashes, hash_each
from slipway.publishing.manifest import Manifest, ManifestEntry, Snapshot, named
from slipway.publishing.progress import Progress
from slipway.publishing.store import ArtifactStore
from slipway.publishing.upload import Upload, upload


def publish_directory(
    directory: Path,
    shown_as: str,
    store: ArtifactStore,
    access: Access,
    progress: Progress,
    *,
    root: Path | None = None,
    check: Check | None = None,
) -> tuple[Manifest, int]:
    """Publishes every file of a directory as one artifact.

    It can be stopped at any moment: the manifest is written after every file, and the next run
    sends only what is missing.

    Args:
        directory: the files to publish.
        shown_as: name of the directory in messages.
        store: receives the files.
        access: says whether a failure lies in its credentials.
        progress: shows the upload.
        root: the project, which keeps the hashes for the next publish; None for files that no
            other publish reads.
        check: refuses files that are no whole model, before they are hashed.

    Returns:
        What the artifact holds, and how many bytes were sent.

    Raises:
        UserError: there is nothing to publish, an upload failed, or a file changed meanwhile.
    """
    hashes = hash_each if root is None else KnownHashes.of(root, directory, progress)

    def checked(files: Mapping[str, os.DirEntry[str]]) -> Mapping[str, str]:
        if check is not None:
            check(directory_files(directory, shown_as, files))
        return hashes(files)

    snapshot = Snapshot.of(directory, shown_as, checked)
    if snapshot.empty:
        progress.note(f"S3 keeps no empty folders. {shown_as} has: {named(snapshot.empty)}")
    sent_bytes = publish_files(snapshot, snapshot.manifest, store, access, progress)
    return snapshot.manifest, sent_bytes


def publish_files(
    snapshot: Snapshot, manifest: Manifest, store: ArtifactStore, access: Access, progress: Progress
) -> int:
    """Publishes the files of a directory under a digest.

    Args:
        snapshot: what is sent.
        manifest: the manifest that the digest was computed from. Its paths must match
            `snapshot`; the bytes differ where a file contains a value of the environment.
        store: receives the files.
        access: says whether a failure lies in its credentials.
        progress: shows the upload.

    Returns:
        How many bytes were sent.

    Raises:
        UserError: an upload failed, or a file changed after it was hashed. What this run may have
            sent with other content is deleted.
    """
    contents, digest = snapshot.manifest, manifest.digest
    if store.holds(digest, contents):
        progress.start(0)
        return 0
    missing = store.missing(digest, contents)
    total = sum(entry.size_bytes for entry in missing)
    progress.start(total)
    sent = _send(snapshot, missing, digest, store, access, progress) if missing else set()
    store.commit(manifest, contents, sent=sent)
    return total


def _send(
    snapshot: Snapshot,
    missing: Sequence[ManifestEntry],
    digest: str,
    store: ArtifactStore,
    access: Access,
    progress: Progress,
) -> set[str]:
    """Uploads files, unless their content changes meanwhile; returns what this run wrote."""
    directory, problems, sent = snapshot.directory, list[Problem](), set[str]()
    uploads = [
        Upload(directory / entry.path, entry.path, entry.size_bytes, entry.sha256)
        for entry in missing
    ]
    try:
        upload(
            uploads,
            digest=digest,
            store=store,
            access=access,
            advance=progress.advance,
            sent=sent,
        )
    except UserError as error:
        problems += error.problems
    # A file in parts is read once more, and S3 compares no hash of the whole.
    if changed := snapshot.changed([entry.path for entry in missing]):
        changing = Problem(
            Code.FILES_CHANGED,
            Kind.STATE,
            f"{snapshot.shown_as} changed while it was published: {named(changed)}",
            "Run the command again once nobody writes there.",
        )
        problems.insert(0, changing)
        try:
            store.remove(digest, sorted(sent & set(changed)))
        except UserError as error:
            problems += error.problems
    if problems:
        raise UserError(problems)
    return sent
