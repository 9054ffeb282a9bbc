"""What a model takes of an accelerator's memory: the parts, by container, and what is nearly full.

Expected numbers are computed by hand from the networks' published shapes.
"""

import dataclasses
import json
from typing import Any

import pytest

from slipway.cli.plan_text import describe_memory
from slipway.facts.instances import instance_types
from slipway.planning import advice
from slipway.planning.advice import (
    disk_nearly_full,
    download_may_time_out,
    memory_nearly_full,
)
from slipway.planning.families import deployment_of
from slipway.planning.memory import estimate
from slipway.planning.memory_estimate import MemoryEstimate
from slipway.planning.partial import rules_of
from tests.support.projects import LOCAL, model_config
from tests.unit.planning.models import (
    BERT,
    DEEPSEEK_V3,
    FLAN_T5_XXL,
    FLAN_UL2,
    GEMMA_3_27B,
    GPT2_XL,
    GPT_J,
    LLAMA_8B,
    LLAMA_405B,
    QWEN_3_NEXT,
    QWEN_72B,
    QWEN_235B,
    TOKENS,
    custom,
    lmi,
    neuron,
    triton,
    vllm,
)

GIB = 2**30


def memory(instance: str = "ml.g4dn.xlarge", **sections: Any) -> MemoryEstimate | None:
    return estimate(deployment_of(model_config(**sections), LOCAL), instance_types()[instance])


def known(instance: str = "ml.g4dn.xlarge", **sections: Any) -> MemoryEstimate:
    found = memory(instance, **sections)
    assert found is not None
    return found


def gib(numbers: float) -> Any:
    return pytest.approx(numbers / GIB, abs=0.001)


def test_the_parts_of_gpt2_xl():
    found = known(model=GPT2_XL, serving={"max_batch_size": 10})
    assert found.accelerator == "NVIDIA T4"
    assert (found.memory_gib, found.available_gib) == (16, 16)
    assert (found.accelerators_per_copy, found.copies, found.copies_per_accelerator) == (
        1, 1, 1,
    )  # fmt: skip
    # Two bytes for each weight.
    assert found.weights_gib == found.copy_weights_gib == pytest.approx(2.901, abs=0.001)
    # A key and a value of 1600 numbers in 48 layers, for 10 x (64 + 42) tokens, three times.
    assert found.cache_gib == gib(3 * 2 * 48 * 1600 * 1060 * 2)
    assert found.total_gib == found.weights_gib + found.cache_gib + found.overhead_gib
    assert found.overhead_gib == 1.0
    single, half = known(model=GPT2_XL, serving={"dtype": "fp32"}), known(model=GPT2_XL)
    assert single.weights_gib == pytest.approx(2 * half.weights_gib, abs=0.002)
    assert single.cache_gib == pytest.approx(2 * half.cache_gib, abs=0.002)
    grouped = known(model=GPT2_XL | {"key_value_heads": 5})
    assert grouped.cache_gib == pytest.approx(half.cache_gib / 5, abs=0.001)
    wide = known(model=GPT2_XL | {"head_size": 128})
    assert wide.cache_gib == pytest.approx(2 * half.cache_gib, abs=0.002)
    # Its one copy takes one GPU of several.
    found = known("ml.g5.12xlarge", model=GPT2_XL)
    assert (found.accelerators_per_copy, found.copies) == (1, 1)
    assert found.weights_gib == pytest.approx(2.901, abs=0.001)


class TestLmi:
    def test_published_models(self):
        serving = lmi(dtype="fp32", tensor_parallel_degree=4, max_batch_size=4, **TOKENS)
        found = known("ml.g5.12xlarge", model=FLAN_T5_XXL, serving=serving)
        assert (found.accelerators_per_copy, found.copies) == (4, 1)
        assert found.available_gib == 22.35
        assert found.copy_weights_gib == gib(11.3e9 * 4)
        assert found.weights_gib == pytest.approx(10.524, abs=0.001)
        # Each GPU has 16 heads of 64. In 24 layers the decoder keeps key and value of 128 tokens of
        # the answer, and of 512 of the encoder's output, for 4 requests, in 4 bytes.
        assert found.cache_gib == gib(24 * 2 * 16 * 64 * (128 + 512) * 4 * 4)
        assert found.total_gib < found.available_gib
        alone = known("ml.g5.12xlarge", model=FLAN_UL2, serving=lmi(dtype="bf16"))
        assert alone.weights_gib == pytest.approx(36.246, abs=0.001)
        assert alone.weights_gib > alone.available_gib
        # Four copies, none of which shares a GPU with another.
        assert (alone.copies, alone.copies_per_accelerator) == (4, 1)
        spread = lmi(dtype="bf16", tensor_parallel_degree=4)
        found = known("ml.g5.12xlarge", model=FLAN_UL2, serving=spread)
        assert found.weights_gib == pytest.approx(9.061, abs=0.001)
        serving = lmi("djl-deepspeed", dtype="fp16", max_batch_size=2, **TOKENS)
        found = known("ml.g4dn.2xlarge", model=GPT_J, serving=serving)
        assert found.weights_gib == pytest.approx(11.271, abs=0.001)
        assert found.cache_gib == gib(28 * 2 * 4096 * 640 * 2 * 2)
        assert found.total_gib < found.available_gib == 16
        single = known("ml.g4dn.2xlarge", model=GPT_J, serving=serving | {"dtype": "fp32"})
        assert single.weights_gib == pytest.approx(22.541, abs=0.001)

    def test_both_degrees_divide_layers_and_heads(self):
        whole = known("ml.g5.48xlarge", model=GPT_J, serving=lmi(dtype="fp16", **TOKENS))
        both = {"tensor_parallel_degree": 2, "pipeline_parallel_degree": 2}
        part = known("ml.g5.48xlarge", model=GPT_J, serving=lmi(dtype="fp16", **TOKENS, **both))
        assert (part.accelerators_per_copy, part.copies) == (4, 2)
        assert part.weights_gib == pytest.approx(whole.weights_gib / 4, abs=0.001)
        assert part.cache_gib == pytest.approx(whole.cache_gib / 4, abs=0.001)
        # Heads that are fewer than GPUs are held more than once.
        one = {"key_value_heads": 1}
        serving = vllm(tensor_parallel_degree=4)
        found = known("ml.g5.12xlarge", model=LLAMA_8B | one, serving=serving)
        assert found.cache_gib == gib(32 * 2 * 128 * 32 * 640 * 2)
        # An encoder keeps no cache.
        assert known("ml.g5.2xlarge", model=BERT, serving=lmi(dtype="fp16")).cache_gib == 0

    @pytest.mark.parametrize(
        ("dtype", "size"), [("fp32", 4), ("fp16", 2), ("bf16", 2), ("int8", 1), ("fp8", 1)]
    )
    def test_every_precision_has_its_size(self, dtype, size):
        found = known("ml.g5.2xlarge", model=LLAMA_8B, serving=lmi(dtype=dtype, **TOKENS))
        assert found.weights_gib == gib(LLAMA_8B["parameters"] * size)
        # Weights of one byte are computed with, and cached, in two.
        assert found.cache_gib == gib(32 * 2 * 8 * 128 * 640 * max(size, 2))


def cached(model: dict[str, Any], tokens: int = 1024, **serving: Any) -> Any:
    """Returns the GiB of the cache of one request of so many tokens, on one of eight GPUs."""
    lengths = {"max_rolling_batch_size": 1, "max_input_tokens": tokens - 1, "max_new_tokens": 1}
    return known("ml.p5.48xlarge", model=model, serving=vllm(**lengths) | serving).cache_gib


class TestShapes:
    @pytest.mark.parametrize(
        ("model", "token_bytes"),
        [(DEEPSEEK_V3, 70_272), (QWEN_72B, 327_680), (LLAMA_405B, 516_096)],
    )
    def test_a_token_takes_what_its_authors_say(self, model, token_bytes):
        # "Insights into DeepSeek-V3" (arXiv 2505.09343), table 1.
        assert cached(model) == gib(1024 * token_bytes)

    def test_vllm_finds_room_for_as_many_tokens(self):
        # vllm issue 12330: 11.12 GiB on an A100 hold 91,056 tokens of Llama-3-8B.
        assert cached(LLAMA_8B, 91_056) == pytest.approx(11.12, rel=0.001)
        # vllm issue 21348: Qwen3-235B over 4 GPUs, 178,880 tokens in 8.11 GiB of each in vLLM. In
        # SGLang 367,404 tokens take 8.23 + 8.23 GiB.
        spread = {"tensor_parallel_degree": 4}
        assert cached(QWEN_235B, 178_880, **spread) == pytest.approx(8.11, rel=0.015)
        assert cached(QWEN_235B, 367_404, **spread) == pytest.approx(2 * 8.23, rel=0.001)

    def test_a_layer_with_a_window_keeps_no_more_than_the_window(self):
        each = 2 * 16 * 128 * 2
        assert cached(GEMMA_3_27B, 512) == gib(62 * 512 * each)
        assert cached(GEMMA_3_27B, 32_768) == gib((10 * 32_768 + 52 * 1024) * each)
        two = known(
            "ml.p5.48xlarge",
            model=GEMMA_3_27B,
            serving=vllm(max_rolling_batch_size=2, max_input_tokens=3072, max_new_tokens=1024),
        )
        assert two.cache_gib == gib(2 * (10 * 4096 + 52 * 1024) * each)
        # Each accelerator holds the whole vector of latent attention.
        assert cached(DEEPSEEK_V3, tensor_parallel_degree=8) == gib(1024 * 70_272)

    def test_layers_without_attention_keep_no_keys_and_values(self):
        assert cached(QWEN_3_NEXT) == gib(12 * 1024 * 2 * 2 * 256 * 2)
        mamba = {"family": "mamba2", "parameters": 2_700_000_000, "layers": 64, "cached_layers": 0}
        assert cached(mamba) == 0
        # A state is kept of each request, however long.
        hybrid = QWEN_3_NEXT | {"state_bytes": 2**26}
        values = cached(QWEN_3_NEXT, 4096)
        assert cached(hybrid, 4096) == pytest.approx(values + 1 / 16, abs=0.001)
        four = cached(hybrid, 4096, max_rolling_batch_size=4)
        assert four == pytest.approx(4 * values + 1 / 4, abs=0.003)
        two = cached(hybrid, 4096, tensor_parallel_degree=2)
        assert two == pytest.approx(values / 2 + 1 / 32, abs=0.001)
        assert cached(mamba | {"state_bytes": 2**28}, max_rolling_batch_size=8) == 2.0

    def test_the_cache_follows_kind_and_precision(self):
        modern = {"family": "modernbert", "parameters": 149_014_272, "layers": 22,
                  "hidden_size": 768, "attention_heads": 12, "cached_layers": 0}  # fmt: skip
        found = known("ml.g5.2xlarge", model=modern, serving=vllm())
        assert found.cache_gib == 0
        assert found.available_gib == found.memory_gib
        # A cache in fp8 is half as large if the config says so.
        halved = cached(LLAMA_8B, options={"kv_cache_dtype": "fp8_e5m2"})
        assert halved == pytest.approx(cached(LLAMA_8B) / 2, abs=0.001)
        assert cached(LLAMA_8B, options={"kv_cache_dtype": "auto"}) == cached(LLAMA_8B)
        # Weights in fp8 are computed with, and cached, in two bytes.
        assert cached(LLAMA_8B | {"quantization": "fp8"}) == cached(LLAMA_8B)


class TestVllm:
    def test_an_8b_llama_fits_the_share_that_vllm_allocates(self):
        found = known("ml.g5.2xlarge", model=LLAMA_8B, serving=vllm())
        assert found.memory_gib == 22.35
        assert found.available_gib == pytest.approx(0.9 * 22.35)
        assert found.weights_gib == pytest.approx(14.958, abs=0.001)
        # 128 KiB for each of 32 x 640 tokens.
        assert found.cache_gib == 2.5
        assert found.total_gib < found.available_gib

    @pytest.mark.parametrize(
        ("serving", "share"),
        [
            *((vllm(options={"gpu_memory_utilization": value}), 0.5) for value in (0.5, "0.5")),
            # What is no share leaves the default.
            *((vllm(options={"gpu_memory_utilization": v}), 0.9) for v in ("most", 0, 90)),
            (vllm(rolling_batch="auto"), 0.9),
            (vllm(rolling_batch="vllm"), 0.9),
            (vllm(framework="djl-deepspeed", rolling_batch="vllm"), 0.9),
            (vllm(framework="djl-deepspeed", rolling_batch="lmi-dist"), 0.9),
            (vllm(rolling_batch="disable"), 1),
            (vllm(script="handlers/own"), 1),
            (vllm(framework="djl-deepspeed"), 1),
            (vllm(framework="djl-tensorrtllm", rolling_batch="trtllm"), 1),
        ],
    )
    def test_only_vllm_keeps_to_a_share(self, serving, share):
        found = known("ml.g5.2xlarge", model=LLAMA_8B, serving=serving)
        assert found.available_gib == pytest.approx(share * 22.35)

    def test_its_batch_is_the_rolling_one(self):
        found = known("ml.g5.2xlarge", model=LLAMA_8B, serving=vllm(max_rolling_batch_size=None))
        assert found.cache_gib is None
        assert found.cache_unknown == "`max_rolling_batch_size` is not given"
        # TensorRT-LLM has one too, without a word in the config.
        own = vllm(framework="djl-tensorrtllm", version="0.33.0")
        found = known("ml.g5.2xlarge", model=LLAMA_8B, serving=own)
        assert found.cache_gib == gib(32 * 2 * 1024 * 32 * 640 * 2)
        # Batches of the server's own turn it off.
        serving = vllm(max_rolling_batch_size=None, max_batch_size=4)
        found = known("ml.g5.2xlarge", model=LLAMA_8B, serving=serving)
        assert found.available_gib == 22.35
        assert found.cache_gib == gib(32 * 2 * 1024 * 4 * 640 * 2)
        # An encoder does not run in it.
        found = known("ml.g5.2xlarge", model=BERT, serving=vllm())
        assert found.available_gib == 22.35


def test_each_instance_of_the_group_is_a_copy_with_a_cache():
    model = GPT_J | {"parameters": 1_000_000_000}
    one = known("ml.g5.xlarge", model=model, serving=triton())
    three = known("ml.g5.xlarge", model=model, serving=triton(instance_group_count=3))
    assert one.weights_gib == gib(2e9)
    assert one.cache_gib == gib(28 * 2 * 4096 * 8 * 640 * 2)
    assert (three.copies, three.copies_per_accelerator) == (3, 3)
    assert three.weights_gib == gib(6e9)
    assert three.cache_gib == pytest.approx(3 * one.cache_gib, abs=0.002)
    assert three.copy_weights_gib == one.weights_gib
    # The group is one GPU's; Triton makes one on each.
    four = known("ml.g5.12xlarge", model=model, serving=triton(instance_group_count=3))
    assert (four.copies, four.copies_per_accelerator) == (12, 3)
    assert four.weights_gib == three.weights_gib
    assert known(serving=triton(dtype="fp32")).weights_gib == gib(124_439_808 * 4)


class TestNeuron:
    def test_bert_base_on_each_core(self):
        found = known("ml.inf1.xlarge", model=BERT, serving=neuron())
        assert (found.accelerator, found.available_gib) == ("AWS Inferentia", 8)
        # Four cores share the device's memory, and each worker has its own copy in bf16.
        assert (found.copies, found.copies_per_accelerator) == (4, 4)
        assert found.weights_gib == pytest.approx(0.816, abs=0.001)
        assert found.cache_gib == 0
        serving = neuron(framework="neuronx", dtype="fp32")
        found = known("ml.inf2.xlarge", model=BERT, serving=serving)
        assert (found.accelerator, found.available_gib) == ("AWS Inferentia2", 32)
        assert (found.copies, found.copies_per_accelerator) == (2, 2)
        assert found.weights_gib == pytest.approx(0.816, abs=0.001)
        # Each bucket is a graph with weights of its own.
        one = known("ml.inf1.xlarge", model=BERT, serving=neuron())
        three = known("ml.inf1.xlarge", model=BERT, serving=neuron(sequence_lengths=[32, 64, 128]))
        assert three.weights_gib == pytest.approx(3 * one.weights_gib, abs=0.002)
        assert (three.copies, three.copies_per_accelerator) == (12, 12)
        assert "12 copies" in three.parts

    def test_a_pipeline_spreads_one_copy(self):
        found = known("ml.inf1.6xlarge", model=BERT, serving=neuron(workers=3))
        # Cores are taken in order: all three are on the first of four devices.
        assert (found.copies, found.copies_per_accelerator) == (3, 3)
        assert found.weights_gib == gib(3 * 109_482_240 * 2)
        pipeline = neuron(objective="latency", pipeline_cores=16)
        found = known("ml.inf1.6xlarge", model=BERT, serving=pipeline)
        assert (found.accelerators_per_copy, found.copies) == (4, 1)
        # A sixteenth on each of a device's four cores.
        assert found.weights_gib == gib(109_482_240 * 2 / 4)
        uneven = neuron(objective="latency", pipeline_cores=6, workers=1)
        found = known("ml.inf1.6xlarge", model=BERT, serving=uneven)
        assert found.accelerators_per_copy == 2
        assert found.weights_gib == gib(109_482_240 * 2 * 4 / 6)
        # LMI's degree counts cores.
        serving = lmi("djl-neuronx", dtype="fp16", tensor_parallel_degree=4, **TOKENS)
        found = known("ml.inf2.24xlarge", model=LLAMA_8B, serving=serving)
        assert (found.accelerators_per_copy, found.copies) == (2, 3)
        # Two of the four cores are on one device.
        assert found.weights_gib == gib(8_030_261_248 * 2 / 2)
        assert found.cache_gib == gib(32 * 2 * 8 * 128 * 640 * 2 / 2)
        assert found.available_gib == 32


def test_weights_are_compared_with_all_accelerators_together():
    serving = custom(dtype="fp16")
    found = known("ml.g5.12xlarge", model={"parameters": 40_000_000_000}, serving=serving)
    assert found.accelerators_per_copy == 4
    assert found.weights_gib == gib(40e9 * 2 / 4)
    assert found.copy_weights_gib == gib(40e9 * 2)
    assert (found.cache_gib, found.cache_unknown) == (None, "the container is your own")
    # Without a precision nothing is known.
    assert memory(serving=custom()) is None


def test_what_is_not_known_is_not_guessed():
    assert memory("ml.c5.xlarge") is None
    # What cannot run is not estimated.
    for serving in ({}, triton(), neuron(framework="neuronx"), lmi(dtype="fp16")):
        assert memory("ml.dl1.24xlarge", serving=serving) is None
    assert memory("ml.p6e-gb200.36xlarge") is None
    assert known().cache_gib is None
    assert known().cache_unknown == "the network's shape is not given"
    found = known("ml.g5.2xlarge", model=GPT_J, serving=lmi(dtype="fp16"))
    assert found.cache_unknown == "`max_input_tokens` and `max_new_tokens` are not both given"
    # Cores that no source gives.
    inf2 = instance_types()["ml.inf2.xlarge"]
    assert inf2.accelerator is not None
    bare = dataclasses.replace(inf2.accelerator, neuron_cores_per_device=None)
    config = model_config(model=BERT, serving=lmi("djl-neuronx", dtype="fp16"))
    deployment = deployment_of(config, LOCAL)
    assert estimate(deployment, dataclasses.replace(inf2, accelerator=bare)) is None
    # The estimate is plain data.
    found = dataclasses.asdict(known(model=GPT2_XL))
    assert json.loads(json.dumps(found)) == found


def test_the_estimate_in_words():
    assert describe_memory(known(model=GPT2_XL)) == (
        "about 4.6 of 16.0 GiB (NVIDIA T4): weights 2.9 (fp16), cache 0.7, assumed for the rest 1.0"
    )
    assert describe_memory(known()) == (
        "about 1.2 of 16.0 GiB (NVIDIA T4): weights 0.2 (fp16), cache unknown (the network's "
        "shape is not given), assumed for the rest 1.0"
    )
    serving = lmi(dtype="fp32", tensor_parallel_degree=4, max_batch_size=4, **TOKENS)
    assert describe_memory(known("ml.g5.12xlarge", model=FLAN_T5_XXL, serving=serving)) == (
        "about 12.0 of 22.4 GiB (NVIDIA A10G): weights 10.5 (fp32, a copy over 4 "
        "accelerators), cache 0.5, assumed for the rest 1.0"
    )
    assert describe_memory(known("ml.inf1.xlarge", model=BERT, serving=neuron())) == (
        "about 1.8 of 8.0 GiB (AWS Inferentia): weights 0.8 (bf16, 4 copies), cache 0.0, "
        "assumed for the rest 1.0"
    )
    assert describe_memory(known("ml.g5.2xlarge", model=LLAMA_8B, serving=vllm())) == (
        "about 18.5 of 22.4 GiB (NVIDIA A10G), of which vLLM takes 90 %: weights 15.0 (bf16), "
        "cache 2.5, assumed for the rest 1.0"
    )


def test_advice_is_given():
    assert {memory_nearly_full, disk_nearly_full, download_may_time_out} <= set(rules_of(advice))
