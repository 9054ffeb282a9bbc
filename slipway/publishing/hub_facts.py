"""What the Hugging Face Hub tells of a repository, without downloading its weights.

The JSON files of a commit come whole. Of each safetensors file only the header comes, which names
its tensors: some kilobytes of gigabytes.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from slipway.config.checkpoint import CheckpointFacts
from slipway.config.sections.artifacts import HubWeights
from slipway.publishing.file_set import checkpoint_facts
from slipway.publishing.hub import Hub, told_plainly

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
    hub = Hub(repository, environment)
    with told_plainly(_named(repository, revision)):
        commit = hub.commit(revision)
        files = hub.file_set(commit, hub.files(commit))
        sizes_bytes = files.sizes_bytes
        checkpoint = checkpoint_facts(files)
    has_safetensors = any(name.endswith(".safetensors") for name in sizes_bytes)
    patterns = _PATTERNS if has_safetensors else _PICKLED_PATTERNS
    size = sum(
        size
        for name, size in sizes_bytes.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    )
    return HubFacts(commit, checkpoint, patterns, round(size / 1e9, 3))


def _named(repository: str, revision: str) -> Any:
    """Returns weights for messages; the revision may be a branch."""
    return HubWeights.model_construct(source="hub", repository=repository, revision=revision)
