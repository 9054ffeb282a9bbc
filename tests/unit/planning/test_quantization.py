"""Quantised weights: the memory follows the setting and the checkpoint's size."""

from typing import Any

import pytest

from slipway.planning.families import deployment_of
from slipway.planning.quantization import stored_weights
from slipway.planning.rules.sizes import weights_fit_accelerator
from tests.support.projects import PRODUCTION, model_config
from tests.unit.planning.models import lmi, vllm, weights
from tests.unit.planning.rule_findings import findings

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
    assert findings(weights_fit_accelerator, PRODUCTION, **given) == []


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


def test_flags_of_the_first_versions_quantise_too():
    serving = lmi("djl-deepspeed", dtype="fp16", options={"load_in_8bit": True})
    deployment = deployment_of(model_config(serving=serving), PRODUCTION)
    assert deployment.quantization == "bitsandbytes8"
    serving["options"] = {"load_in_4bit": "false"}
    assert deployment_of(model_config(serving=serving), PRODUCTION).quantization is None
