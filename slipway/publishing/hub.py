"""Fetches one commit of a repository on the Hugging Face Hub: resumable, and every file verified.

Files are only read and hashed; nothing of a repository is ever run. The token is always HF_TOKEN of
the environment, so that the result does not depend on a login of the machine. It is neither written
nor shown, and the Hub's own client keeps it from other hosts.
"""

import errno
import hashlib
import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from slipway.codes.code import Code
from slipway.config.sections.artifacts import HubWeights
from slipway.errors import Kind, Problem, UserError
from slipway.publishing.manifest import is_portable
from slipway.publishing.progress import Progress

_CHUNK_BYTES = 1 << 20
# A download that breaks goes on where it stopped; this often without one new byte, and it is over.
_FRUITLESS_TRIES = 3
_FIELD = ("artifacts", "weights")


@dataclass(frozen=True)
class HubFile:
    """One file of the commit.

    Args:
        path: in the repository.
        size_bytes: its size.
        sha256: of its content where the Hub says (large files), or None.
        blob_id: git's SHA-1 of it, which the Hub says of the others.
    """

    path: str
    size_bytes: int
    sha256: str | None
    blob_id: str

    def is_content_of(self, path: Path) -> bool:
        """Returns whether a file has the content that the commit names."""
        if path.stat().st_size != self.size_bytes:
            return False
        if self.sha256 is not None:
            return _digest(path, hashlib.sha256()) == self.sha256
        # Git's name for a file: a header and the content. It is no protection, as SHA-256 is, but
        # it is what there is for small files, and finds every accident.
        git = hashlib.sha1(usedforsecurity=False)
        git.update(b"blob %d\0" % self.size_bytes)
        return _digest(path, git) == self.blob_id


def fetch(
    weights: HubWeights,
    directory: Path,
    progress: Progress,
    environment: Mapping[str, str] = os.environ,
) -> Path:
    """Brings the files of a commit that match the patterns into a directory.

    Args:
        weights: repository, commit and patterns.
        directory: of these alone; what an earlier run left there is used.
        progress: shows the download.
        environment: HF_TOKEN for private and gated repositories, HF_ENDPOINT for a mirror.

    Returns:
        The folder in it with the files, complete and verified.

    Raises:
        UserError: the Hub does not have it, does not let us, or does not answer; or a file is not
            what the commit says.
    """
    # A second to import, and only for models that come from there.
    from huggingface_hub import HfApi

    # Its warnings show addresses that are signed for us.
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    token: str | bool = environment.get("HF_TOKEN") or False
    endpoint = (environment.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
    with told_plainly(weights):
        files = _files(HfApi(endpoint=endpoint, token=token), weights)
    complete, parts = directory / "files", directory / "parts"
    _require_space(directory, sum(file.size_bytes for file in files), complete, parts)
    progress.start(sum(file.size_bytes for file in files), "downloading")
    for file in files:
        target = complete / file.path
        # Moved there once it was verified.
        if target.is_file() and file.is_content_of(target):
            progress.advance(file.size_bytes)
            continue
        part = parts / hashlib.sha256(file.path.encode()).hexdigest()
        part.parent.mkdir(parents=True, exist_ok=True)
        with told_plainly(weights):
            _download(weights, file, part, endpoint, token, progress)
        if not file.is_content_of(part):
            part.unlink()
            raise UserError(
                [
                    Problem(
                        Code.HUB_FILE_CHANGED,
                        Kind.STATE,
                        f"{file.path} of {weights.repository} arrived with other content than the "
                        "commit has",
                        "Run the command again; it is downloaded anew. If that does not help, "
                        "something between here and the Hub changes it.",
                        _FIELD,
                    )
                ]
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        part.replace(target)
    return complete


def _files(api: Any, weights: HubWeights) -> list[HubFile]:
    from huggingface_hub import RepoFile

    tree = api.list_repo_tree(weights.repository, recursive=True, revision=weights.revision)
    found = [
        HubFile(item.path, item.size, item.lfs.sha256 if item.lfs else None, item.blob_id)
        for item in tree
        if isinstance(item, RepoFile)
    ]
    wanted = [
        file
        for file in found
        if any(fnmatchcase(file.path, pattern) for pattern in weights.allow_patterns)
    ]
    if not wanted:
        raise UserError(
            [
                Problem(
                    Code.HUB_PATTERNS,
                    Kind.VALUE,
                    f"no file of {weights.repository} matches `allow_patterns`",
                    f"It has {len(found)} files, for example "
                    f"{', '.join(file.path for file in found[:5]) or 'none'}.",
                    _FIELD,
                )
            ]
        )
    unnameable = [file.path for file in wanted if not is_portable(file.path)]
    if unnameable:
        raise UserError(
            Problem(
                Code.UNUSABLE_FILE_NAME,
                Kind.VALUE,
                f"{weights.repository} has a file whose name cannot be used: {path!r}",
                "Leave it out with `allow_patterns`.",
                _FIELD,
            )
            for path in unnameable
        )
    return sorted(wanted, key=lambda file: file.path)


def _download(
    weights: HubWeights,
    file: HubFile,
    part: Path,
    endpoint: str,
    token: str | bool,
    progress: Progress,
) -> None:
    """Downloads one file, from where an earlier try stopped."""
    import httpx2
    from huggingface_hub import hf_hub_url
    from huggingface_hub.file_download import http_get

    # Exported, if not by the letter of its __init__.
    from huggingface_hub.utils import tqdm as hub_tqdm  # type: ignore[attr-defined]

    class Advance(hub_tqdm):
        """The client's progress bar, which reports to Slipway's."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options | {"disable": True})  # type: ignore[no-untyped-call]

        def update(self, n: float | None = 1) -> bool | None:
            progress.advance(int(n or 0))
            return None

    url = hf_hub_url(weights.repository, file.path, revision=weights.revision, endpoint=endpoint)
    # Not compressed: what has arrived is then where to go on.
    headers = {"accept-encoding": "identity"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    fruitless = 0
    with part.open("ab") as stream:
        if stream.tell() > file.size_bytes:
            stream.seek(0)
            stream.truncate()
        progress.advance(stream.tell())
        while stream.tell() < file.size_bytes:
            begun_at = stream.tell()
            try:
                http_get(
                    url,
                    stream,
                    resume_size=begun_at,
                    headers=headers,
                    expected_size=file.size_bytes,
                    tqdm_class=Advance,
                )
            except httpx2.TransportError:
                stream.flush()
                fruitless = fruitless + 1 if stream.tell() == begun_at else 0
                if fruitless == _FRUITLESS_TRIES:
                    raise


@contextmanager
def told_plainly(weights: HubWeights) -> Iterator[None]:
    """Turns the client's errors into what the user can do; nothing of a request is shown.

    Args:
        weights: names the repository and the revision in messages.

    Raises:
        UserError: in place of an error of the client.
    """
    import httpx2
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    name = weights.repository
    again = "Run the command again: what has arrived is not downloaded twice."
    try:
        yield
    except GatedRepoError:
        code, message, remedy = (
            Code.HUB_DENIED,
            f"{name} is gated",
            f"Accept its conditions at https://huggingface.co/{name} and set HF_TOKEN to a token "
            "of the account that did.",
        )
    except RepositoryNotFoundError:
        code, message, remedy = (
            Code.HUB_NOT_FOUND,
            f"the Hub has no repository {name}, or does not show it",
            "Correct `repository`; where it is private, set HF_TOKEN to a token that may read it.",
        )
    except RevisionNotFoundError:
        code, message, remedy = (
            Code.HUB_NOT_FOUND,
            f"{name} has no commit {weights.revision}",
            "Correct `revision`: the commit, all 40 digits.",
        )
    except HFValidationError:
        code, message, remedy = (
            Code.HUB_NOT_FOUND,
            f"{name} cannot be the name of a repository",
            "Correct `repository`: OWNER/NAME.",
        )
    except OfflineModeIsEnabled:
        code, message, remedy = (
            Code.HUB_UNAVAILABLE,
            "the Hub's client is switched off by HF_HUB_OFFLINE",
            "Unset it.",
        )
    except HfHubHTTPError as error:
        status = error.response.status_code
        if status == 401:
            code, message, remedy = (
                Code.HUB_DENIED,
                "the Hub does not take the token in HF_TOKEN",
                "Set it to a token that is valid, or unset it for a public repository.",
            )
        elif status == 429:  # Too Many Requests
            code, message, remedy = (
                Code.HUB_UNAVAILABLE,
                f"the Hub lets this address send no more requests for now (429), about {name}",
                "Set HF_TOKEN, with which it allows more, or wait five minutes. Then run the "
                "command again: what has arrived is not downloaded twice.",
            )
        else:
            code, message, remedy = (
                Code.HUB_UNAVAILABLE,
                f"the Hub answers {status} about {name}",
                again,
            )
    except httpx2.TransportError as error:
        code, message, remedy = (
            Code.HUB_UNAVAILABLE,
            f"the Hub does not answer: {type(error).__name__}",
            again,
        )
    except OSError as error:
        # A disk that is full, or an answer that is shorter than it says.
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        code, message, remedy = (
            Code.NO_DISK_SPACE if full else Code.HUB_UNAVAILABLE,
            f"{name} could not be downloaded: {error.strerror or error}",
            f"Make room. {again}" if full else again,
        )
    else:
        return
    raise UserError([Problem(code, Kind.STATE, message, remedy, _FIELD)]) from None


def _require_space(directory: Path, total_bytes: int, *already: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    there = sum(
        path.stat().st_size for folder in already for path in folder.rglob("*") if path.is_file()
    )
    free = shutil.disk_usage(directory).free
    if total_bytes - there > free:
        raise UserError.of(
            Code.NO_DISK_SPACE,
            f"the files need {(total_bytes - there) / 1e9:.1f} GB of disk in {directory}, and "
            f"{free / 1e9:.1f} GB are free",
            "Make room; they are deleted again once they are published.",
        )


def _digest(path: Path, digest: Any) -> str:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    text: str = digest.hexdigest()
    return text
