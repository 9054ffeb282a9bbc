"""What the Hugging Face Hub tells of a repository, without downloading its weights.

The JSON files of a commit come whole. Of each safetensors file only the header comes, which names
its tensors: some kilobytes of gigabytes.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slipway.config.checkpoint import CheckpointFacts
from slipway.config.sections.artifacts import HubWeights
from slipway.publishing.file_set import checkpoint_facts
from slipway.publishing.hub import Hub, told_plainly
from slipway.publishing.selection import loaded_files


@dataclass(frozen=True)
class HubFacts:
    """What the Hub tells of a commit.

    The size is that of the files that publishing takes.
    """

    commit: str
    checkpoint: CheckpointFacts
    size_gb: float


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
        checkpoint = checkpoint_facts(files)
        size = sum(files.sizes_bytes[path] for path in loaded_files(files))
    return HubFacts(commit, checkpoint, round(size / 1e9, 3))


def _named(repository: str, revision: str) -> Any:
    """Returns weights for messages; the revision may be a branch."""
    return HubWeights.model_construct(source="hub", repository=repository, revision=revision)
