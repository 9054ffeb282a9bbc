"""`slipway fit --hub`: the shape of a checkpoint on the Hub, without a config."""

import json

import pytest

from tests.publishing.hub_stand_in import REPOSITORY
from tests.support.projects import write_project
from tests.support.published import published

GOAL = ("--rate", "2", "--p99", "20000", "--tokens", "500,200")
NETWORK = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "torch_dtype": "bfloat16",
    "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "num_hidden_layers": 2, "vocab_size": 1000, "max_position_embeddings": 40960,
    "tie_word_embeddings": False, "use_sliding_window": False, "sliding_window": None,
}  # fmt: skip
FILES = {
    **published("gemma-3-12b-it", {"model.embed_tokens.weight": ("BF16", [2000, 1000])}),
    "config.json": json.dumps(NETWORK).encode(),
}


@pytest.fixture
def run(tmp_path, monkeypatch, slipway_command, serve_hub):
    monkeypatch.chdir(write_project(tmp_path, {}))

    def command(repository, files, *arguments):
        serve_hub(files)
        return slipway_command("fit", "--hub", repository, *GOAL, *arguments, "--json")

    return command


def test_a_checkpoint_of_the_hub_is_ranked(run):
    types = "ml.g6e.xlarge,ml.g4dn.xlarge"
    code, output, errors = run(REPOSITORY, FILES, "--instances", types)
    assert (code, errors) == (0, "")
    (ranked,) = json.loads(output)["ranked"]
    assert ranked["instance_type"] == "ml.g6e.xlarge"
    # The batch is what fits, and not the 16 of a first config.
    assert ranked["largest_batch"] == 64


def test_weights_that_do_not_hold_the_embeddings_are_refused(run):
    network = json.dumps({**NETWORK, "vocab_size": 200_000}).encode()
    code, output, _ = run(REPOSITORY, {**FILES, "config.json": network})
    assert code == 1
    (problem,) = json.loads(output)["problems"]
    assert problem["message"] == (
        "nothing can be predicted: 2,000,000 weights are fewer than the embeddings"
    )


def test_a_repository_that_is_missing_is_named(run):
    code, output, _ = run("no/such", FILES)
    assert code == 1
    assert json.loads(output)["problems"][0]["code"] == "SW610"
