"""Publishes a directory of this machine: hash, send what is missing, have S3 copy it, commit.

s5cmd cannot send `If-None-Match` (peak/s5cmd issue 752, open on 2026-11-28; its SDK, aws-sdk-go
1.44.298, has no such member), and S3 keeps no SHA-256 of what it sends. It sends to a prefix that
nothing is served from. S3 copies each file into the artifact, where its own SHA-256 of the file is
the manifest's.
"""

import gzip
import os
import tarfile
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from slipway.codes.code import Code
from slipway.errors import Kind, Problem, UserError
from slipway.planning.artifact_place import MODEL_ARCHIVE
from slipway.publishing.file_set import Select, directory_files
from slipway.publishing.hashes import KnownHashes, hash_each
from slipway.publishing.manifest import Manifest, ManifestEntry, Snapshot, named
from slipway.publishing.s5cmd import Folder, Upload, upload
from slipway.publishing.store import ArtifactStore
from slipway.publishing.verified_copies import CopiedFile, Copies

# Deflate at this level is fast, and weights hardly shrink at any.
_LEVEL = 1


def publish_directory(
    directory: Path,
    shown_as: str,
    store: ArtifactStore,
    *,
    root: Path | None = None,
    select: Select | None = None,
    packs: bool = False,
) -> tuple[Manifest, int]:
    """Publishes a directory's files as one artifact; returns it, and how many bytes were sent.

    It can be stopped at any moment: the manifest is written after every file, and the next run
    sends only what is missing. `root` is the project, which keeps the hashes for the next publish;
    None for files that no other publish reads. With `packs`, one archive of the files is published
    in their place.

    Raises `UserError` if there is nothing to publish, an upload failed, or a file changed
    meanwhile.
    """
    hashes = hash_each if root is None else KnownHashes.of(root, directory, store.progress)

    def checked(files: Mapping[str, os.DirEntry[str]]) -> Mapping[str, str]:
        if select is None:
            return hashes(files)
        taken = select(directory_files(directory, shown_as, files))
        return hashes({name: files[name] for name in taken.sizes_bytes})

    snapshot = Snapshot.of(directory, shown_as, checked)
    if snapshot.empty:
        store.progress.note(f"S3 keeps no empty folders. {shown_as} has: {named(snapshot.empty)}")
    with tempfile.TemporaryDirectory(prefix="slipway-archive-") as temporary:
        if packs:
            names = [entry.path for entry in snapshot.manifest.entries]
            pack(directory, names, Path(temporary))
            if changed := snapshot.changed(names):
                raise UserError([_changing(snapshot, changed)])
            snapshot = Snapshot.of(Path(temporary), shown_as)
        sent_bytes = publish_files(snapshot, snapshot.manifest, store)
    return snapshot.manifest, sent_bytes


def publish_files(snapshot: Snapshot, manifest: Manifest, store: ArtifactStore) -> int:
    """Publishes the files of a directory under a digest; returns how many bytes were sent.

    The digest is that of `manifest`. Its paths must match `snapshot`; the bytes differ where a file
    contains a value of the environment. Raises `UserError` if an upload failed, or a file changed
    after it was hashed: no file is in the artifact with other content.
    """
    contents, digest = snapshot.manifest, manifest.digest
    if store.holds(digest, contents):
        store.progress.start(0)
        return 0
    missing = store.missing(digest, contents)
    staged = store.staged(digest) if missing else {}
    unsent = [
        entry
        for entry in missing
        if entry.path not in staged or staged[entry.path].size_bytes != entry.size_bytes
    ]
    copies, sent_bytes = Copies(digest, store, store, within_s3=True), 0
    copied = missing
    while copied:
        sent_bytes += _send(snapshot, unsent, digest, store)
        found = store.staged(digest)
        files = [CopiedFile(entry, found[entry.path]) for entry in copied if entry.path in found]
        store.progress.start(sum(entry.size_bytes for entry in copied), "copying")
        wrong = [*copies.run(files), *(entry for entry in copied if entry.path not in found)]
        if changed := [entry.path for entry in wrong if entry in unsent]:
            raise UserError([_changing(snapshot, changed)])
        # What an earlier run sent may have other content: it is sent again.
        copied = unsent = wrong
    store.commit(manifest, contents, sent={entry.path for entry in missing} - copies.there)
    return sent_bytes


def _send(
    snapshot: Snapshot, unsent: Sequence[ManifestEntry], digest: str, store: ArtifactStore
) -> int:
    """Uploads files, unless their content changes meanwhile; returns how many bytes."""
    directory, problems = snapshot.directory, list[Problem]()
    staging = f"s3://{store.bucket}/{store.staging_prefix(digest)}"
    uploads = [
        Upload(directory / entry.path, f"{staging}{entry.path}", entry.size_bytes)
        for entry in unsent
    ]
    is_whole = len(unsent) == len(snapshot.states)
    total_bytes = sum(entry.size_bytes for entry in unsent)
    store.progress.start(total_bytes)
    try:
        upload(
            uploads,
            access=store.access,
            on_complete=lambda item: store.progress.advance(item.size_bytes),
            key_arn=store.key_arn,
            folder=Folder(directory, staging) if is_whole else None,
        )
    except UserError as error:
        problems += error.problems
    # s5cmd reads each file once more, and does not say what it read.
    if changed := snapshot.changed([entry.path for entry in unsent]):
        problems.insert(0, _changing(snapshot, changed))
    if problems:
        raise UserError(problems)
    return total_bytes


def _changing(snapshot: Snapshot, changed: Sequence[str]) -> Problem:
    return Problem(
        Code.FILES_CHANGED,
        Kind.STATE,
        f"{snapshot.shown_as} changed while it was published: {named(changed)}",
        "Run the command again once nobody writes there.",
    )


def pack(directory: Path, names: Iterable[str], into: Path) -> None:
    """Writes the archive of files below a directory; the same files give the same bytes."""
    with (
        (into / MODEL_ARCHIVE).open("wb") as file,
        gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for name in sorted(names):
            path = directory / name
            info = tarfile.TarInfo(name)
            info.size, info.mode = path.stat().st_size, 0o644
            with path.open("rb") as content:
                tar.addfile(info, content)
