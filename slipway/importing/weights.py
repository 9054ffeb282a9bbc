"""Weights as other tools name them: an address in S3, a repository of the Hugging Face Hub."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from slipway.config.checkpoint import CheckpointFacts

DEFAULT_BRANCH = "main"
"""Branch of a repository where nothing names another one."""

_COMMIT = re.compile(r"[0-9a-f]{40}")
_REPOSITORY = re.compile(r"[\w.-]+(/[\w.-]+)?")
# `{{model_id}}` of a notebook's template, `<bucket>`, `$BUCKET`.
_PLACEHOLDER = re.compile(r"[{}<>$]")
_ARCHIVES = (".tar.gz", ".tgz", ".tar")


@dataclass(frozen=True)
class WeightsPlace:
    """The weights, as far as the settings tell.

    Args:
        name: the setting that names them, with its value; for guesses and messages.
        section: `artifacts.weights`; None if something is missing.
        repository: repository of the Hub; None for weights elsewhere.
        revision: branch, tag or commit of it that the settings name.
        missing: why there is no section, as half a sentence.
        facts: what the checkpoint's files say; empty if they were not read.
        unread: why they were not read, as half a sentence; empty if nothing tried.
    """

    name: str
    section: Mapping[str, Any] | None = None
    repository: str | None = None
    revision: str | None = None
    missing: str = ""
    facts: CheckpointFacts = field(default_factory=CheckpointFacts)
    size_gb: float | None = None
    unread: str = ""

    @property
    def branch(self) -> str:
        """Returns the branch or tag whose commit is wanted."""
        return self.revision or DEFAULT_BRANCH


def is_commit(revision: str) -> bool:
    """Returns whether a revision is a commit with all its digits, and no branch."""
    return _COMMIT.fullmatch(revision) is not None


def named_weights(shown: str, value: str, revision: str | None = None) -> WeightsPlace:
    if _PLACEHOLDER.search(value):
        return WeightsPlace(shown, missing=f"`{shown}` is a placeholder")
    if value.startswith("s3://") and value.endswith(_ARCHIVES):
        return WeightsPlace(shown, missing=f"`{shown}` is an archive, and no prefix of files")
    if value.startswith("s3://"):
        bucket, _, prefix = value.removeprefix("s3://").partition("/")
        uri = f"s3://{bucket}/{prefix.rstrip('/')}/" if prefix.strip("/") else f"s3://{bucket}/"
        return WeightsPlace(shown, {"source": "s3", "uri": uri})
    if not _REPOSITORY.fullmatch(value):
        return WeightsPlace(shown, missing=f"`{shown}` is neither in S3 nor on the Hub")
    if revision is not None and is_commit(revision):
        section = {"source": "hub", "repository": value, "revision": revision}
        return WeightsPlace(shown, section, value, revision)
    missing = f"`{shown}` names no commit"
    return WeightsPlace(shown, repository=value, revision=revision, missing=missing)
