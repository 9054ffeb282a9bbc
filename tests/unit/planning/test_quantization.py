"""Quantised weights: the memory follows the setting and the checkpoint's size."""

from typing import Any

import pytest

from slipway.planning.families import deployment_of
from slipway.planning.quantization import stored_weights
from slipway.planning.rules.sizes import weights_fit_accelerator
from tests.support.projects import PRODUCTION, model_config
from tests.unit.planning.models import lmi, reported, vllm, weights

LLAMA_70B = {
    "family": "llama", "parameters": 70_553_706_496, "layers": 80, "hidden_size": 8192,
    "attention_heads": 64, "key_value_heads": 8,
}  # fmt: skip
DEEPSEEK_R1 = {"family": "other", "parameters": 671_026_419_200}
GPT_OSS_120B = {"family": "other", "parameters": 116_829_156_672}
LLAMA_13B = {"family": "llama", "parameters": 13_015_864_320}
SMOOTHQUANT = lmi("djl-tensorrtllm", dtype="fp16", options={"quantize": "smoothquant"})


def sections(
    model: dict[str, Any], serving: dict[str, Any], size_gb: float | None, instance: str
) -> dict[str, Any]:
    return {
        "model": model,
        "serving": serving,
        "artifacts": weights(size_gb),
        "endpoint": {"instances": [instance], "network_isolation": False},
    }


@pytest.mark.parametrize(
    ("model", "serving", "size_gb", "instance", "gigabytes", "precision"),
    [
        (LLAMA_70B, vllm(dtype="fp16", tensor_parallel_degree=4, options={"quantize": "awq"}),
         39.8, "ml.g5.12xlarge", 39.8, "awq"),
        (DEEPSEEK_R1, vllm(dtype="fp16", tensor_parallel_degree=8, options={"quantize": "awq"}),
         366.0, "ml.p5.48xlarge", 366.0, "awq"),
        (DEEPSEEK_R1, vllm(dtype="auto", tensor_parallel_degree=8),
         688.6, "ml.p5en.48xlarge", 688.6, "auto, quantized as in the checkpoint"),
        (GPT_OSS_120B, vllm(), 65.2, "ml.p5.4xlarge", 65.2, "bf16, quantized as in the checkpoint"),
        (LLAMA_13B, SMOOTHQUANT, 26.0, "ml.g5.2xlarge", 13.015_864_320, "smoothquant"),
    ],
    ids=["llama-70b awq", "deepseek-r1 awq", "deepseek-r1 fp8", "gpt-oss-120b", "smoothquant"],
)  # fmt: skip
def test_published_quantised_models_fit(model, serving, size_gb, instance, gigabytes, precision):
    given = sections(model, serving, size_gb, instance)
    stored = stored_weights(deployment_of(model_config(**given), PRODUCTION), serving["dtype"])
    assert stored.size_bytes == pytest.approx(gigabytes * 1e9)
    assert stored.precision == precision
    assert reported(weights_fit_accelerator, PRODUCTION, **given) == []


@pytest.mark.parametrize(
    ("dtype", "options", "size_gb", "gigabytes"),
    [
        ("fp16", {}, None, 26.03),
        ("auto", {}, None, 26.03),
        # A checkpoint in fp32 or in two formats, or one that is loaded in a larger precision.
        ("auto", {}, 52.0, 26.03),
        ("fp16", {}, 23.0, 26.03),
        ("fp32", {}, 13.0, 52.06),
        ("fp16", {"quantize": "gptq"}, None, 7.42),
        ("fp16", {"quantize": "gptq"}, 9.0, 9.0),
        # Quantised while it is loaded.
        ("fp16", {"quantize": "fp8"}, 26.0, 13.02),
        ("fp16", {"quantize": "compressed-tensors"}, 7.5, 7.5),
        ("fp16", {"quantize": "compressed-tensors"}, None, 26.03),
    ],
)
def test_what_counts(dtype, options, size_gb, gigabytes):
    given = sections(LLAMA_13B, vllm(dtype=dtype, options=options), size_gb, "ml.g5.12xlarge")
    stored = stored_weights(deployment_of(model_config(**given), PRODUCTION), dtype)
    assert stored.size_bytes / 1e9 == pytest.approx(gigabytes, abs=0.01)


# Their sizes are those of the safetensors files on the Hub.
LLAMA_70B_AWQ = LLAMA_70B | {"vocabulary_size": 128_256, "tied_embeddings": False,
                             "quantization": "awq"}  # fmt: skip
GPT_OSS = {
    "family": "gpt_oss", "hidden_size": 2880, "attention_heads": 64, "key_value_heads": 8,
    "head_size": 64, "vocabulary_size": 201_088, "tied_embeddings": False, "quantization": "mxfp4",
}  # fmt: skip
QWEN_2_5_7B_AWQ = {
    "family": "qwen2", "parameters": 7_615_616_512, "hidden_size": 3584,
    "vocabulary_size": 152_064, "tied_embeddings": False, "quantization": "awq",
}  # fmt: skip
QWEN_3_30B_FP8 = {
    "family": "qwen3_moe", "parameters": 30_532_122_624, "hidden_size": 2048,
    "vocabulary_size": 151_936, "tied_embeddings": False, "quantization": "fp8",
}  # fmt: skip


def stored_gigabytes(model: dict[str, Any], size_gb: float | None = None) -> float:
    given = sections(model, vllm(dtype="auto"), size_gb, "ml.p5.48xlarge")
    return stored_weights(deployment_of(model_config(**given), PRODUCTION), "auto").size_bytes / 1e9


@pytest.mark.parametrize(
    ("model", "gigabytes"),
    [
        (LLAMA_70B_AWQ, 39.8),
        (GPT_OSS | {"parameters": 116_829_156_672, "layers": 36}, 65.2),
        (GPT_OSS | {"parameters": 20_914_757_184, "layers": 24}, 13.76),
        (QWEN_2_5_7B_AWQ, 5.6),
        (QWEN_3_30B_FP8, 31.2),
    ],
    ids=["llama-70b", "gpt-oss-120b", "gpt-oss-20b", "qwen2.5-7b", "qwen3-30b"],
)
def test_embeddings_stay_in_two_bytes(model, gigabytes):
    assert stored_gigabytes(model) == pytest.approx(gigabytes, rel=0.02)


def test_the_size_of_a_checkpoint_that_is_stored_quantised_is_exact():
    # A vision tower in two bytes makes it larger than its method would.
    assert stored_gigabytes(LLAMA_70B_AWQ, 60.0) == 60.0
    compressed = LLAMA_70B | {"quantization": "compressed_tensors"}
    assert stored_gigabytes(compressed, 70.0) == 70.0
    # Nobody says how many bits it has.
    assert stored_gigabytes(compressed) == pytest.approx(141.1, abs=0.01)


def test_flags_of_the_first_versions_quantise_too():
    serving = lmi("djl-deepspeed", dtype="fp16", options={"load_in_8bit": True})
    deployment = deployment_of(model_config(serving=serving), PRODUCTION)
    assert deployment.quantization == "bitsandbytes8"
    serving["options"] = {"load_in_4bit": "false"}
    assert deployment_of(model_config(serving=serving), PRODUCTION).quantization is None
