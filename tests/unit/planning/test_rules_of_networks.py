"""The shape of a network, its size, and its weights on accelerators: refusals, and what passes."""

from typing import Any

import pytest

from slipway.planning import advice
from slipway.planning.advice import disk_nearly_full, download_may_time_out
from slipway.planning.partial import rules_of
from slipway.planning.rules import network
from slipway.planning.rules.sizes import weights_fit_accelerator
from tests.unit.planning.models import (
    BERT,
    FLAN_T5_XXL,
    FLAN_UL2,
    GPT_J,
    LLAMA_8B,
    custom,
    lmi,
    neuron,
    triton,
    vllm,
)
from tests.unit.planning.rule_findings import findings, on, only


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


FIELD = "endpoint.instances[0]"


def refused(instance: str, **sections: Any) -> tuple[str, str]:
    ((field, message, remedy),) = findings(
        weights_fit_accelerator, endpoint=on(instance), **sections
    )
    assert field == FIELD
    return message, remedy


def fits(instance: str, **sections: Any) -> bool:
    return not findings(weights_fit_accelerator, endpoint=on(instance), **sections)


def test_advice_is_given():
    assert {disk_nearly_full, download_may_time_out} <= set(rules_of(advice))


class TestWeights:
    def test_weights_fit_accelerator(self):
        large = {"parameters": 20_000_000_000}
        assert refused("ml.g4dn.xlarge", model=large) == (
            "20,000,000,000 weights in fp16 take 37.3 GiB; ml.g4dn.xlarge has 16.0 GiB (NVIDIA T4)",
            "Choose an instance type whose GPU has more memory.",
        )
        assert fits("ml.p4d.24xlarge", model=large)
        assert findings(weights_fit_accelerator) == []
        serving = lmi("djl-deepspeed", dtype="fp32")
        assert refused("ml.g4dn.2xlarge", model=GPT_J, serving=serving) == (
            "6,050,882,784 weights in fp32 take 22.5 GiB; ml.g4dn.2xlarge has 16.0 GiB (NVIDIA T4)",
            "Set `dtype: fp16`, or choose an instance type whose accelerators have more memory.",
        )
        half = serving | {"dtype": "fp16"}
        assert fits("ml.g4dn.2xlarge", model=GPT_J, serving=half)
        assert refused("ml.g5.12xlarge", model=FLAN_T5_XXL, serving=lmi(dtype="fp32")) == (
            "11,300,000,000 weights in fp32 take 42.1 GiB; ml.g5.12xlarge has 22.4 GiB "
            "(NVIDIA A10G)",
            "Raise `tensor_parallel_degree` to 2, or set `dtype: bf16`, or choose an instance type "
            "whose accelerators have more memory.",
        )
        four = lmi(dtype="fp32", tensor_parallel_degree=4)
        assert fits("ml.g5.12xlarge", model=FLAN_T5_XXL, serving=four)
        # 20.9 GiB: below the GPU's memory, above nine tenths of it.
        model = LLAMA_8B | {"parameters": 11_200_000_000}
        message, _ = refused("ml.g5.2xlarge", model=model, serving=vllm())
        assert message == (
            "11,200,000,000 weights in bf16 take 20.9 GiB; ml.g5.2xlarge has 22.4 GiB "
            "(NVIDIA A10G), of which vLLM takes 90 %"
        )
        plain = vllm(rolling_batch="disable")
        assert fits("ml.g5.2xlarge", model=model, serving=plain)

    def test_a_smaller_precision_where_that_is_enough(self):
        model = {"parameters": 5_000_000_000}
        assert refused("ml.g4dn.xlarge", model=model, serving={"dtype": "fp32"}) == (
            "5,000,000,000 weights in fp32 take 18.6 GiB; ml.g4dn.xlarge has 16.0 GiB (NVIDIA T4)",
            "Set `dtype: fp16`, or choose an instance type whose GPU has more memory.",
        )
        _, remedy = refused(
            "ml.g4dn.xlarge", model={"parameters": 10_000_000_000}, serving={"dtype": "fp32"}
        )
        assert remedy == "Choose an instance type whose GPU has more memory."

    def test_t5_is_not_sent_to_a_precision_that_it_or_the_gpu_lacks(self):
        small = FLAN_T5_XXL | {"parameters": 6_000_000_000}
        _, remedy = refused("ml.g4dn.2xlarge", model=small, serving=lmi(dtype="fp32"))
        assert "dtype" not in remedy
        _, remedy = refused("ml.g4dn.2xlarge", model=GPT_J, serving=lmi(dtype="fp32"))
        assert "`dtype: fp16`" in remedy

    def test_flan_ul2_has_no_smaller_precision_to_go_to(self):
        assert refused("ml.g5.2xlarge", model=FLAN_UL2, serving=lmi(dtype="bf16")) == (
            "19,459,584,000 weights in bf16 take 36.2 GiB; ml.g5.2xlarge has 22.4 GiB "
            "(NVIDIA A10G)",
            "Choose an instance type whose accelerators have more memory, or take a type with more "
            "accelerators and raise `tensor_parallel_degree`.",
        )

    def test_a_type_with_just_as_many_accelerators_is_an_alternative(self):
        model = LLAMA_8B | {"parameters": 100_000_000_000}
        serving = vllm(tensor_parallel_degree=8)
        _, remedy = refused("ml.g5.48xlarge", model=model, serving=serving)
        assert "choose an instance type whose accelerators have more memory" in remedy.lower()

    def test_a_copy_over_several_names_the_sum_and_the_part(self):
        model = LLAMA_8B | {"parameters": 70_000_000_000}
        serving = vllm(tensor_parallel_degree=4)
        message, remedy = refused("ml.g5.48xlarge", model=model, serving=serving)
        assert message == (
            "70,000,000,000 weights in bf16 take 130.4 GiB, 32.6 on each of 4; ml.g5.48xlarge has "
            "4 x 22.4 GiB (NVIDIA A10G), of which vLLM takes 90 %"
        )
        assert remedy == (
            "Raise `tensor_parallel_degree` to 8, or choose an instance type whose accelerators "
            "have more memory."
        )

    def test_a_degree_divides_the_heads_and_the_gpus(self):
        model = LLAMA_8B | {"parameters": 70_000_000_000, "attention_heads": 28}
        serving = vllm(tensor_parallel_degree=4)
        _, remedy = refused("ml.g5.48xlarge", model=model, serving=serving)
        assert "Raise" not in remedy
        fewer = GPT_J | {"parameters": 20_000_000_000, "attention_heads": 12}
        _, remedy = refused("ml.g5.12xlarge", model=fewer, serving=lmi(dtype="fp32"))
        # 3 would divide the heads and be enough, but not the four GPUs.
        assert remedy.startswith("Raise `tensor_parallel_degree` to 4, or choose")

    def test_what_no_single_accelerator_has(self):
        model = LLAMA_8B | {"parameters": 400_000_000_000}
        _, remedy = refused("ml.g5.2xlarge", model=model, serving=vllm())
        assert remedy == "Take a type with more accelerators and raise `tensor_parallel_degree`."
        model = LLAMA_8B | {"parameters": 4_000_000_000_000}
        _, remedy = refused("ml.g5.2xlarge", model=model, serving=vllm())
        assert remedy == "Use a smaller model: no instance type has the memory."

    def test_copies_of_a_group(self):
        model = {"parameters": 2_900_000_000}
        serving = triton(instance_group_count=4, dtype="fp32")
        assert refused("ml.g5.xlarge", model=model, serving=serving) == (
            "4 copies of 2,900,000,000 weights in fp32 take 43.2 GiB; ml.g5.xlarge has 22.4 GiB "
            "(NVIDIA A10G)",
            "Lower `instance_group_count` to 2, or set `dtype: fp16`, or choose an instance type "
            "whose GPU has more memory.",
        )

    def test_copies_on_a_neuron_device(self):
        model = BERT | {"parameters": 1_500_000_000}
        assert refused("ml.inf1.xlarge", model=model, serving=neuron()) == (
            "4 copies of 1,500,000,000 weights in bf16 take 11.2 GiB; ml.inf1.xlarge has 8.0 GiB "
            "(AWS Inferentia)",
            "Lower `workers` to 2.",
        )
        assert fits("ml.inf1.xlarge", model=model, serving=neuron(workers=2))
        large = BERT | {"parameters": 10_000_000_000}
        newer = neuron(framework="neuronx", workers=2)
        _, remedy = refused("ml.inf2.xlarge", model=large, serving=newer)
        assert remedy == (
            "Lower `workers` to 1, or choose an instance type whose device has more memory."
        )
        serving = custom(dtype="fp16")
        assert refused("ml.g5.12xlarge", model={"parameters": 50_000_000_000}, serving=serving) == (
            "50,000,000,000 weights in fp16 take 93.1 GiB, 23.3 on each of 4; ml.g5.12xlarge has "
            "4 x 22.4 GiB (NVIDIA A10G)",
            "Choose an instance type whose accelerators have more memory.",
        )
        assert fits("ml.g5.12xlarge", model={"parameters": 47_000_000_000}, serving=serving)
        pool = {"instances": ["ml.g5.xlarge", "ml.g4dn.xlarge"]}
        model = {"parameters": 10_000_000_000}
        found = findings(weights_fit_accelerator, model=model, endpoint=pool)
        assert [field for field, _, _ in found] == ["endpoint.instances[1]"]

    def test_a_pipeline_of_more_cores(self):
        model = BERT | {"parameters": 9_500_000_000}
        serving = neuron(objective="latency", pipeline_cores=6)
        assert refused("ml.inf1.6xlarge", model=model, serving=serving) == (
            "9,500,000,000 weights in bf16 take 17.7 GiB, 11.8 on each of 2; ml.inf1.6xlarge has "
            "2 x 8.0 GiB (AWS Inferentia)",
            "Raise `pipeline_cores` to 9.",
        )
        # Two workers have eight cores each.
        both = serving | {"workers": 2}
        _, remedy = refused("ml.inf1.6xlarge", model=model, serving=both)
        assert "pipeline_cores" not in remedy
