"""What the Hugging Face Hub tells of a repository, without downloading its weights.

The JSON files of a commit come whole. Of each safetensors file only the header comes, which names
its tensors: some kilobytes of gigabytes.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from slipway.codes.code import Code
from slipway.config.checkpoint import CheckpointFacts, read_checkpoint, weight_files
from slipway.config.sections.artifacts import HubWeights
from slipway.errors import UserError
from slipway.publishing.hub import told_plainly

_DOCUMENTS = ("config.json", "generation_config.json", "model.safetensors.index.json")
_ONLY_FILE = "model.safetensors"
# Safetensors' own limit for the header.
_LONGEST_HEADER_BYTES = 100_000_000
_LENGTH_BYTES = 8
_PARTIAL_CONTENT = 206
_PATTERNS: tuple[str, ...] = HubWeights.model_fields["allow_patterns"].default
# For repositories without safetensors files.
_PICKLED_PATTERNS = ("*.bin", "*.json", "*.model", "*.txt")


@dataclass(frozen=True)
class HubFacts:
    """What the Hub tells of a commit.

    Args:
        commit: all 40 digits.
        checkpoint: facts of the network.
        patterns: the files to take: safetensors, or pickled weights where there are no others.
        size_gb: size of these files.
    """

    commit: str
    checkpoint: CheckpointFacts
    patterns: tuple[str, ...]
    size_gb: float

    @property
    def has_default_patterns(self) -> bool:
        """Returns whether a config may leave the patterns out."""
        return self.patterns == _PATTERNS


def hub_facts(
    repository: str, revision: str, environment: Mapping[str, str] = os.environ
) -> HubFacts:
    """Asks the Hub for the facts of a commit.

    Args:
        repository: `OWNER/NAME`.
        revision: branch, tag or commit.
        environment: HF_TOKEN for private and gated repositories, HF_ENDPOINT for a mirror.

    Raises:
        UserError: the Hub does not have it, does not let us, or does not answer.
    """
    hub = _Hub(repository, environment)
    with told_plainly(_named(repository, revision)):
        commit = hub.commit(revision)
        sizes_bytes = hub.sizes_bytes(commit)
        with TemporaryDirectory() as folder:
            directory = Path(folder)
            _require_all([_ONLY_FILE] * (_ONLY_FILE in sizes_bytes), sizes_bytes, repository)
            for name in (*_DOCUMENTS, _ONLY_FILE):
                if name in sizes_bytes:
                    hub.save(commit, name, directory)
            shards = sorted(weight_files(directory, repository) - {_ONLY_FILE})
            _require_all(shards, sizes_bytes, repository)
            for name in shards:
                hub.save(commit, name, directory)
            checkpoint = read_checkpoint(directory, repository)
    has_safetensors = any(name.endswith(".safetensors") for name in sizes_bytes)
    patterns = _PATTERNS if has_safetensors else _PICKLED_PATTERNS
    size = sum(
        size
        for name, size in sizes_bytes.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    )
    return HubFacts(commit, checkpoint, patterns, round(size / 1e9, 3))


class _Hub:
    """The client's calls about one repository."""

    def __init__(self, repository: str, environment: Mapping[str, str]) -> None:
        # A second to import, and only for models that come from there.
        from huggingface_hub import HfApi

        self._repository = repository
        self._endpoint = (environment.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
        self._token = environment.get("HF_TOKEN") or None
        self._api = HfApi(endpoint=self._endpoint, token=self._token or False)

    def commit(self, revision: str) -> str:
        """Returns the present commit of a branch."""
        return str(self._api.model_info(self._repository, revision=revision).sha)

    def sizes_bytes(self, commit: str) -> dict[str, int]:
        """Returns the sizes of a commit's files by path."""
        from huggingface_hub import RepoFile

        tree = self._api.list_repo_tree(self._repository, recursive=True, revision=commit)
        return {item.path: item.size for item in tree if isinstance(item, RepoFile)}

    def save(self, commit: str, name: str, directory: Path) -> None:
        """Writes a JSON file, or the header of a safetensors file, into a directory."""
        if not name.endswith(".safetensors"):
            (directory / name).write_bytes(self._content(commit, name))
            return
        prefix = self._content(commit, name, (0, _LENGTH_BYTES))
        length = int.from_bytes(prefix, "little")
        if len(prefix) < _LENGTH_BYTES or length > _LONGEST_HEADER_BYTES:
            is_short = len(prefix) < _LENGTH_BYTES
            reason = "it is too short" if is_short else "its header is too long"
            raise UserError.of(
                Code.HUB_FILE_CHANGED,
                f"{name} of {self._repository} is no safetensors file: {reason}",
                "Give the number of weights with `--parameters` and the files with `--weights`.",
            )
        header = self._content(commit, name, (_LENGTH_BYTES, length))
        (directory / name).write_bytes(prefix + header)

    def _content(self, commit: str, name: str, part: tuple[int, int] | None = None) -> bytes:
        """Returns a file, or as many bytes of it from a place on."""
        from huggingface_hub import hf_hub_url

        # Exported, if not by the letter of its __init__.
        from huggingface_hub.utils import (  # type: ignore[attr-defined]
            get_session,
            hf_raise_for_status,
        )

        url = hf_hub_url(self._repository, name, revision=commit, endpoint=self._endpoint)
        # Not compressed: the places count bytes of the file.
        headers = {"accept-encoding": "identity"}
        if self._token is not None:
            headers["authorization"] = f"Bearer {self._token}"
        if part is not None:
            headers["range"] = f"bytes={part[0]}-{part[0] + part[1] - 1}"
        # The client keeps the token from the host that it is sent on to.
        with get_session().stream("GET", url, headers=headers, follow_redirects=True) as response:
            hf_raise_for_status(response)
            if part is not None and response.status_code != _PARTIAL_CONTENT:
                raise UserError.of(
                    Code.HUB_UNAVAILABLE,
                    f"the Hub sends {name} of {self._repository} only as a whole",
                    "Give the number of weights with `--parameters` and the files with "
                    "`--weights`.",
                )
            return bytes(response.read())


def _require_all(shards: Sequence[str], sizes_bytes: Mapping[str, int], repository: str) -> None:
    missing = [name for name in shards if not sizes_bytes.get(name)]
    if missing:
        raise UserError.of(
            Code.FILE_UNREADABLE,
            f"weights of {repository} are not there, or are empty: {', '.join(missing)}",
            "Choose another revision, or ask the repository's owner for the whole checkpoint.",
        )


def _named(repository: str, revision: str) -> Any:
    """Returns weights for messages; the revision may be a branch."""
    return HubWeights.model_construct(source="hub", repository=repository, revision=revision)
