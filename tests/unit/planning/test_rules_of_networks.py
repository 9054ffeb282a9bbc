"""The shape of a network, its size and the lengths of its texts: what no checkpoint can have."""

from typing import Any

import pytest

from slipway.planning.rules import network
from tests.unit.planning.models import vllm
from tests.unit.planning.rule_findings import findings, only


def model(**fields: Any) -> dict[str, Any]:
    return {"family": "llama", "parameters": 7_000_000_000, **fields}


def test_the_heads_divide_the_hidden_size():
    rule = network.heads_divide_hidden_size
    assert only(findings(rule, model=model(hidden_size=4000, attention_heads=28))) == (
        "model.hidden_size",
        "a hidden size of 4000 is no multiple of 28 attention heads",
        "Take both from the checkpoint's config.json; `head_size` is its `head_dim`, if it has "
        "one.",
    )
    assert findings(rule, model=model(hidden_size=3584, attention_heads=28)) == []
    # T5's and Gemma's heads have a width of their own.
    assert findings(rule, model=model(hidden_size=4000, attention_heads=28, head_size=64)) == []
    assert findings(rule, model=model(hidden_size=4000)) == []


def test_attention_heads_share_keys_and_values_equally():
    rule = network.heads_share_keys_and_values
    assert only(findings(rule, model=model(attention_heads=28, key_value_heads=8))) == (
        "model.key_value_heads",
        "28 attention heads are no multiple of 8 key/value heads",
        "Take both from the checkpoint's config.json: `num_attention_heads` and "
        "`num_key_value_heads`.",
    )
    for groups in (1, 4, 28):
        assert findings(rule, model=model(attention_heads=28, key_value_heads=groups)) == []


@pytest.mark.parametrize(
    ("fields", "field", "message", "remedy"),
    [
        ({"layers": 28, "cached_layers": 29}, "cached_layers",
         "`cached_layers: 29` is more than `layers: 28`",
         "Take both from the checkpoint's config.json."),
        ({"layers": 48, "cached_layers": 12, "windowed_layers": 13, "sliding_window": 512},
         "windowed_layers", "`windowed_layers: 13` is more than `cached_layers: 12`",
         "Take both from the checkpoint's config.json."),
        ({"experts": 8, "active_experts": 9}, "active_experts",
         "`active_experts: 9` is more than `experts: 8`",
         "Take both from the checkpoint's config.json."),
        ({"attention_heads": 8, "key_value_heads": 32}, "key_value_heads",
         "`key_value_heads: 32` is more than `attention_heads: 8`",
         "Take both from the checkpoint's config.json."),
        ({"windowed_layers": 3}, "windowed_layers",
         "`windowed_layers` has no effect without `sliding_window`",
         "Add `sliding_window` from the checkpoint's config.json, or remove `windowed_layers`."),
        ({"sliding_window": 4096}, "sliding_window",
         "`sliding_window` has no effect without `windowed_layers`",
         "Add `windowed_layers` from the checkpoint's config.json, or remove `sliding_window`."),
        ({"tied_embeddings": False}, "tied_embeddings",
         "`tied_embeddings` has no effect without `vocabulary_size`",
         "Add `vocabulary_size` from the checkpoint's config.json, or remove `tied_embeddings`."),
        ({"latent_size": 576, "key_value_heads": 128}, "key_value_heads",
         "latent attention keeps no heads of keys and values: `latent_size` excludes "
         "`key_value_heads`",
         "Remove `key_value_heads`, or `latent_size` if config.json has no `kv_lora_rank`."),
    ],
)  # fmt: skip
def test_numbers_that_contradict_each_other(fields, field, message, remedy):
    found = findings(network.numbers_agree, model=model(**fields))
    assert found == [(f"model.{field}", message, remedy)]


def test_numbers_that_agree():
    shape = {
        "layers": 48, "cached_layers": 12, "sliding_window": 512, "windowed_layers": 12,
        "experts": 8, "active_experts": 8, "attention_heads": 8, "key_value_heads": 8,
        "vocabulary_size": 7, "tied_embeddings": True,
    }  # fmt: skip
    assert findings(network.numbers_agree, model=model(**shape)) == []


@pytest.mark.parametrize("size_gb", [1.41, 3.9, 14.0, 28.0, 111.0])
def test_sizes_of_every_precision_fit(size_gb):
    assert findings(
        network.size_fits_parameters, model=model(), artifacts={"size_gb": size_gb}
    ) == []  # fmt: skip


def test_a_size_that_contradicts_the_parameters():
    rule = network.size_fits_parameters
    assert only(findings(rule, model=model(parameters=7_000_000), artifacts={"size_gb": 14.0})) == (
        "artifacts.size_gb",
        "14 GB for 7,000,000 parameters are 2,000.00 bytes for each",
        "Correct one of them: a checkpoint has from 0.2 to 16 bytes for each parameter. "
        "`size_gb` counts in 1,000,000,000 bytes.",
    )
    assert findings(rule, model=model(), artifacts={"size_gb": 1.0}) != []


def tensorrt(tokens: int, answer: int) -> dict[str, Any]:
    lengths = {"max_input_tokens": tokens, "max_new_tokens": answer, "default_new_tokens": 1}
    return {"container": "tensorrt", "max_batch_size": 1, **lengths}


def test_texts_have_positions():
    rule, gpt2 = network.texts_have_positions, model(family="gpt2", parameters=124_439_808)
    assert only(findings(rule, model=gpt2, serving=tensorrt(1000, 25))) == (
        "serving.max_input_tokens",
        "1025 tokens are more than the 1024 positions of the family gpt2",
        "Use 1024 tokens at most, prompt and answer together. If the checkpoint has more "
        "positions, set `family: other` in `model`.",
    )
    assert findings(rule, model=gpt2, serving=tensorrt(1000, 24)) == []
    other = {**gpt2, "family": "other"}
    assert findings(rule, model=other, serving=tensorrt(1000, 25)) == []
    rule, shaped = network.texts_have_positions, model(family="qwen3", positions=1024)
    assert only(findings(rule, model=shaped, serving=tensorrt(1000, 25))) == (
        "serving.max_input_tokens",
        "1025 tokens are more than the 1024 positions of the network",
        "Use 1024 tokens at most, prompt and answer together. If the checkpoint has more "
        "positions, correct `positions` in `model`.",
    )
    longer = model(family="gpt2", positions=2048)
    assert findings(rule, model=longer, serving=tensorrt(1000, 25)) == []
    stretched = vllm(
        max_input_tokens=1000, max_new_tokens=25, options={"hf_overrides": '{"rope_scaling": {}}'}
    )
    assert findings(rule, model=shaped, serving=stretched) == []
