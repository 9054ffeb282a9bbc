"""The lock: what was published for a model, committed beside its config.

A reviewer sees new weights as one changed digest. The lock is data; publishing writes the file.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from pydantic import Field

from slipway.config.schema import ModelConfig
from slipway.config.sections.base import Section

ArtifactSet = Literal["sample", "release"]


class LockedPart(Section):
    """One published part of an artifact."""

    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    size_bytes: int = Field(ge=0)
    file_count: int = Field(ge=1)
    source: str
    target: str


class LockedArtifact(Section):
    """One published artifact: its parts, and the config fields they were made from.

    Which parts there are depends on the container: LMI has `weights` and `code`, the others have
    `compiled`.
    """

    inputs_digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    weights: LockedPart | None = None
    compiled: LockedPart | None = None
    code: LockedPart | None = None


class Lock(Section):
    """The file model_configs/NAME.lock.json."""

    version: Literal[1] = 1
    sample: LockedArtifact | None = None
    release: LockedArtifact | None = None

    def artifact(self, artifacts: ArtifactSet) -> LockedArtifact | None:
        """Returns the published artifact of that set, or None."""
        return self.sample if artifacts == "sample" else self.release

    def render(self) -> str:
        """Returns the file's text; the same lock gives the same bytes."""
        return self.model_dump_json(indent=2, exclude_none=True) + "\n"


def inputs_digest(config: ModelConfig, artifacts: ArtifactSet) -> str:
    """Digests the config fields that an artifact is made from.

    When this differs from the lock's, the config was changed after the last publish.

    Returns:
        SHA-256 in hexadecimal.
    """
    sources = config.artifacts
    source = sources.sample if artifacts == "sample" else sources.release or sources.weights
    inputs: dict[str, Any] = {
        "container": config.serving.container,
        "family": config.model.family,
        "source": source.model_dump(mode="json") if source else None,
    }
    if artifacts == "release" and sources.weights is not None:
        # What is made of a checkpoint follows from how it is served.
        inputs["compile"] = sources.compile.model_dump(mode="json") if sources.compile else None
        inputs["serving"] = config.serving.model_dump(mode="json")
    canonical = json.dumps(inputs, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
