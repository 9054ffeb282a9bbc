"""The lock: what was published for a model, committed beside its config.

A reviewer sees new weights as one changed digest. The lock is data; publishing writes the file.
"""

from __future__ import annotations

import hashlib
import json
from typing import Literal

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
    """One published artifact: its parts, and the config fields they were made from."""

    inputs_digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    compiled: LockedPart


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
    source = config.artifacts.sample if artifacts == "sample" else config.artifacts.release
    inputs = {
        "container": config.serving.container,
        "family": config.model.family,
        "source": source.model_dump(mode="json") if source else None,
    }
    canonical = json.dumps(inputs, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
