"""The facts of a repository come from the stand-in without the weights."""

import json
from collections.abc import Iterator

import pytest

from slipway.errors import UserError
from slipway.publishing.hub import hub_facts
from tests.publishing.checkpoints import tensors
from tests.publishing.hub_stand_in import REPOSITORY, REVISION, Hub, serving

CONFIG = {
    "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8, "torch_dtype": "bfloat16",
    "max_position_embeddings": 8192,
}  # fmt: skip
PARAMETERS = 3_000_000


FILES = {
    "config.json": json.dumps(CONFIG).encode(),
    "model.safetensors.index.json": json.dumps(
        {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    ).encode(),
    "model-1.safetensors": tensors({"a": [1000, 1000]}),
    "model-2.safetensors": tensors({"b": [2000, 1000]}),
    "original/consolidated.pth": bytes(50_000),
}


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serving(Hub(dict(FILES))) as hub:
        yield hub


@pytest.mark.parametrize("revision", ["main", REVISION])
def test_a_commit_its_network_and_its_size(hub: Hub, revision: str) -> None:
    found = hub_facts(REPOSITORY, revision, {"HF_ENDPOINT": hub.url})
    assert found.commit == REVISION
    assert found.checkpoint.family == "llama"
    assert found.checkpoint.parameters == PARAMETERS
    assert found.checkpoint.shape["key_value_heads"] == 8
    assert found.size_gb == 0.006
    # A branch that moves meanwhile changes nothing.
    paths = [path for host, path, *_ in hub.requests[1:] if host == "hub"]
    assert [path for path in paths if REVISION not in path] == []
    # Of the weights only the headers came.
    ranges = [range_ for _, range_ in hub.asked_for(".safetensors")]
    assert len(ranges) == 4
    assert all(range_ is not None and not range_.endswith("-") for range_ in ranges)


def test_pickled_weights_are_taken_where_there_are_no_others(hub: Hub) -> None:
    hub.files = {"config.json": FILES["config.json"], "pytorch_model.bin": bytes(20_000_000)}
    found = hub_facts(REPOSITORY, "main", {"HF_ENDPOINT": hub.url})
    assert found.checkpoint.parameters is None
    assert found.size_gb == 0.02


def test_a_revision_that_is_not_there(hub: Hub) -> None:
    with pytest.raises(UserError, match="has no branch, tag or commit next"):
        hub_facts(REPOSITORY, "next", {"HF_ENDPOINT": hub.url})
