"""What the Hugging Face Hub tells of a repository, without its weights."""

import os
from collections.abc import Mapping
from typing import Any

from slipway.config.sections.artifacts import HubWeights
from slipway.publishing.hub import told_plainly

DEFAULT_BRANCH = "main"


def find_commit(repository: str, revision: str, environment: Mapping[str, str] = os.environ) -> str:
    """Returns the commit that a branch or a tag of the Hub has at present.

    Args:
        repository: `OWNER/NAME`.
        revision: branch, tag or commit.
        environment: HF_TOKEN for private and gated repositories, HF_ENDPOINT for a mirror.

    Raises:
        UserError: the Hub does not have it, does not let us, or does not answer.
    """
    with told_plainly(_named(repository, revision)):
        commit: str = client(environment).model_info(repository, revision=revision).sha
    return commit


def client(environment: Mapping[str, str]) -> Any:
    """Returns the Hub's own client; its token is HF_TOKEN and no other."""
    # A second to import.
    from huggingface_hub import HfApi

    endpoint = (environment.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
    return HfApi(endpoint=endpoint, token=environment.get("HF_TOKEN") or False)


def _named(repository: str, revision: str) -> HubWeights:
    """Returns weights for messages; the revision may be a branch."""
    return HubWeights.model_construct(source="hub", repository=repository, revision=revision)
