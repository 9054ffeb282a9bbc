"""Fetches one commit of a repository on the Hugging Face Hub: resumable, and every file verified.

Files are only read and hashed; nothing of a repository is ever run. The token is always HF_TOKEN of
the environment, so that the result does not depend on a login of the machine. It is neither written
nor shown, and the Hub's own client keeps it from other hosts.
"""

import errno
import functools
import hashlib
import logging
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway.codes.code import Code
from slipway.config.checkpoint import CheckpointFacts
from slipway.config.sections.artifacts import HubWeights
from slipway.errors import UserError
from slipway.publishing.file_set import FileSet, Select, checkpoint_facts
from slipway.publishing.hashes import sha256_of
from slipway.publishing.progress import Progress
from slipway.publishing.selection import loaded_files, wanted

# A download that breaks goes on where it stopped; this often without one new byte, and it is over.
_FRUITLESS_TRIES = 3
_PARTIAL_CONTENT = 206
_UPLOAD_AGAIN = "Choose another revision, or ask its owner to upload the file again."
_FIELD = ("artifacts", "weights")


@dataclass(frozen=True)
class HubFile:
    """One file of the commit.

    `sha256` is of its content where the Hub says (large files). `blob_id` is git's SHA-1 of it,
    which the Hub says of the others.
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
            return sha256_of(path) == self.sha256
        # Git's name for a file: a header and the content. It is no protection, as SHA-256 is, but
        # it is what there is for small files, and finds every accident.
        git = hashlib.sha1(b"blob %d\0" % self.size_bytes, usedforsecurity=False)
        with path.open("rb") as file:
            return hashlib.file_digest(file, lambda: git).hexdigest() == self.blob_id


class Hub:
    """The client's calls about one repository, `OWNER/NAME`.

    The environment has HF_TOKEN for private and gated repositories, and HF_ENDPOINT for a mirror.
    """

    def __init__(self, repository: str, environment: Mapping[str, str]) -> None:
        # A second to import, and only for models that come from there.
        from huggingface_hub import HfApi, constants

        # Warnings of the Hub's client show signed addresses. Only the warning of a wait has none.
        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
        requests = logging.getLogger("huggingface_hub.utils._http")
        requests.setLevel(logging.WARNING)
        requests.addFilter(_tells_of_a_wait)
        self.repository = repository
        self._endpoint = (environment.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
        token = (environment.get("HF_TOKEN") or "").strip()
        self._api = HfApi(endpoint=self._endpoint, token=token or False)
        # Without it, the client waits for ever.
        self._timeout = constants.HF_HUB_DOWNLOAD_TIMEOUT
        # Not compressed: places count bytes of the file.
        self.headers = {"accept-encoding": "identity"}
        if token:
            self.headers["authorization"] = f"Bearer {token}"

    def commit(self, revision: str) -> str:
        """Returns the present commit of a branch."""
        found = self._api.model_info(self.repository, revision=revision, timeout=self._timeout)
        return str(found.sha)

    def files(self, revision: str) -> list[HubFile]:
        # Of what `HfApi.list_repo_tree` calls, this takes a timeout.
        from huggingface_hub.utils import paginate  # type: ignore[attr-defined]

        url = f"{self._endpoint}/api/models/{self.repository}/tree/{revision}"
        rows = paginate(url, {"recursive": True}, self.headers, timeout=self._timeout)
        found = [
            HubFile(row["path"], row["size"], (row.get("lfs") or {}).get("oid"), row["oid"])
            for row in rows
            if row["type"] == "file"
        ]
        return sorted(found, key=lambda file: file.path)

    def file_set(self, revision: str, files: Iterable[HubFile]) -> FileSet:
        read = functools.cache(functools.partial(self.read, revision))
        sizes_bytes = {file.path: file.size_bytes for file in files}
        return FileSet(self.repository, sizes_bytes, read, again=_UPLOAD_AGAIN)

    def url(self, revision: str, path: str) -> str:
        from huggingface_hub import hf_hub_url

        return hf_hub_url(self.repository, path, revision=revision, endpoint=self._endpoint)

    def read(self, revision: str, path: str, start: int, length: int) -> bytes:
        """Returns bytes of a file; raises `UserError` if the Hub sends it only as a whole."""
        # Exported, if not by the letter of its __init__.
        from huggingface_hub.utils import (  # type: ignore[attr-defined]
            hf_raise_for_status,
            http_stream_backoff,
        )

        headers = {**self.headers, "range": f"bytes={start}-{start + length - 1}"}
        url = self.url(revision, path)
        # The client keeps the token from the host that it is sent on to.
        with http_stream_backoff("GET", url, headers=headers, timeout=self._timeout) as response:
            hf_raise_for_status(response)
            if response.status_code != _PARTIAL_CONTENT:
                raise UserError.of(
                    Code.HUB_UNAVAILABLE,
                    f"the Hub sends {path} of {self.repository} only as a whole",
                    "Unset HF_ENDPOINT, or name a mirror that answers requests for a range.",
                )
            return bytes(response.read())


def _tells_of_a_wait(record: logging.LogRecord) -> bool:
    return record.getMessage().startswith("Rate limited. Waiting")


def fetch(
    weights: HubWeights,
    directory: Path,
    progress: Progress,
    environment: Mapping[str, str] = os.environ,
    select: Select | None = None,
) -> Path:
    """Brings the files of a commit that are published into a directory; returns their folder.

    What an earlier run left in the directory is used. `select` returns the files that are
    published, or refuses them, before any is downloaded. Raises `UserError` if the Hub does not
    have it, does not let us, or does not answer; or if a file is not what the commit says.
    """
    hub = Hub(weights.repository, environment)
    with told_plainly(weights):
        found = hub.files(weights.revision)
        listed = hub.file_set(weights.revision, found)
        taken = wanted(listed, weights) if select is None else select(listed)
    files = [file for file in found if file.path in taken.sizes_bytes]
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
            _download(hub, weights.revision, file, part, progress)
        if not file.is_content_of(part):
            part.unlink()
            raise UserError.of(
                Code.HUB_FILE_CHANGED,
                f"{file.path} of {weights.repository} arrived with other content than the commit "
                "has",
                "Run the command again; it is downloaded anew. If that does not help, something "
                "between here and the Hub changes it.",
                field=_FIELD,
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        part.replace(target)
    return complete


@dataclass(frozen=True)
class HubFacts:
    """What the Hub tells of a commit; the size is that of the files that publishing takes."""

    commit: str
    checkpoint: CheckpointFacts
    size_gb: float


def hub_facts(
    repository: str, revision: str, environment: Mapping[str, str] = os.environ
) -> HubFacts:
    """Asks the Hub for the facts of a branch, a tag or a commit; raises `UserError`.

    The JSON files of a commit come whole. Of each safetensors file only the header comes, which
    names its tensors: some kilobytes of gigabytes.
    """
    hub = Hub(repository, environment)
    # The revision may be a branch, as no config has it.
    weights = HubWeights.model_construct(source="hub", repository=repository, revision=revision)
    with told_plainly(weights):
        commit = hub.commit(revision)
        files = hub.file_set(commit, hub.files(commit))
        checkpoint = checkpoint_facts(files)
        size = sum(files.sizes_bytes[path] for path in loaded_files(files))
    return HubFacts(commit, checkpoint, round(size / 1e9, 3))


def _download(hub: Hub, revision: str, file: HubFile, part: Path, progress: Progress) -> None:
    import httpx2
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

    url = hub.url(revision, file.path)
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
                    headers=hub.headers,
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
    """Turns the client's errors into `UserError`; nothing of a request is shown."""
    import httpx2
    from huggingface_hub.errors import HFValidationError, OfflineModeIsEnabled

    try:
        yield
    # The client's errors of HTTP are OSErrors, and so are a full disk and a short answer.
    except (HFValidationError, OfflineModeIsEnabled, httpx2.TransportError, OSError) as error:
        code, message, remedy = _plainly(error, weights)
        raise UserError.of(code, message, remedy, field=_FIELD) from None


def _plainly(error: Exception, weights: HubWeights) -> tuple[Code, str, str]:
    import httpx2
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )
    from huggingface_hub.utils import parse_ratelimit_headers  # type: ignore[attr-defined]

    name = weights.repository
    again = "Run the command again: what has arrived is not downloaded twice."
    match error:
        case GatedRepoError():
            remedy = f"Accept its conditions at https://huggingface.co/{name} and set HF_TOKEN to "
            remedy += "a token of the account that did."
            return Code.HUB_DENIED, f"{name} is gated", remedy
        case RepositoryNotFoundError():
            message = f"the Hub has no repository {name}, or does not show it"
            remedy = "Correct `repository`; where it is private, set HF_TOKEN to a token that may "
            return Code.HUB_NOT_FOUND, message, f"{remedy}read it."
        case RevisionNotFoundError():
            message = f"{name} has no branch, tag or commit {weights.revision}"
            remedy = (
                f"Choose a commit of https://huggingface.co/{name}/commits/main: its owner may "
            )
            return Code.HUB_NOT_FOUND, message, f"{remedy}have rewritten the history."
        case HFValidationError():
            message = f"{name} cannot be the name of a repository"
            return Code.HUB_NOT_FOUND, message, "Correct `repository`: OWNER/NAME."
        case OfflineModeIsEnabled():
            message = "the Hub's client is switched off by HF_HUB_OFFLINE"
            return Code.HUB_UNAVAILABLE, message, "Unset it."
        case HfHubHTTPError() if error.response.status_code == 401:
            remedy = "Set it to a token that is valid, or unset it for a public repository."
            return Code.HUB_DENIED, "the Hub does not take the token in HF_TOKEN", remedy
        case HfHubHTTPError() if error.response.status_code == 403:
            said = error.response.headers.get("X-Error-Message", "it gives no reason")
            remedy = "Set HF_TOKEN to a token that may read it, and gated repositories too."
            return Code.HUB_DENIED, f"the Hub refuses {name} (403): {said}", remedy
        case HfHubHTTPError() if error.response.status_code == 404:
            message = f"the Hub lists a file of {name} that it does not have (404)"
            return Code.HUB_NOT_FOUND, message, _UPLOAD_AGAIN
        case HfHubHTTPError() if error.response.status_code == 429:  # Too Many Requests
            message = f"the Hub lets this address send no more requests for now (429), about {name}"
            limit = parse_ratelimit_headers(error.response.headers)
            after = error.response.headers.get("Retry-After", str(limit and limit.reset_in_seconds))
            wait = f"wait {after} seconds" if after.isdigit() else "wait five minutes"
            remedy = f"Set HF_TOKEN, with which it allows more, or {wait}. {again}"
            return Code.HUB_UNAVAILABLE, message, remedy
        case HfHubHTTPError():
            status = error.response.status_code
            return Code.HUB_UNAVAILABLE, f"the Hub answers {status} about {name}", again
        case httpx2.TimeoutException():
            remedy = f"HF_HUB_DOWNLOAD_TIMEOUT sets after how many seconds it is given up. {again}"
            return Code.HUB_UNAVAILABLE, "the Hub is too slow: nothing came in time", remedy
        case httpx2.TransportError():
            message = f"the Hub does not answer: {type(error).__name__}"
            # Others may have the token in their text.
            if isinstance(error, httpx2.ConnectError | httpx2.ProxyError):
                message += f", {error}"
            return Code.HUB_UNAVAILABLE, message, again
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            message = f"{name} could not be downloaded: {error.strerror}"
            return Code.NO_DISK_SPACE, message, f"Make room. {again}"
        case _:
            reason = getattr(error, "strerror", None) or error
            return Code.HUB_UNAVAILABLE, f"{name} could not be downloaded: {reason}", again


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
