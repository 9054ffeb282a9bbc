"""Published models, sections of configs that serve them, and what a rule finds in a config."""

from typing import Any

from slipway.config.environments import Environment
from slipway.facts.instances import InstanceFacts
from slipway.planning.deployment import Rule
from slipway.planning.families import deployment_of
from tests.support.deployments import on_instance
from tests.support.projects import LOCAL, model_config

FLAN_T5_XXL = {
    "family": "t5", "parameters": 11_300_000_000, "layers": 24, "hidden_size": 4096,
    "attention_heads": 64, "head_size": 64,
}  # fmt: skip
FLAN_UL2 = {
    "family": "t5", "parameters": 19_459_584_000, "layers": 32, "hidden_size": 4096,
    "attention_heads": 16, "head_size": 256,
}  # fmt: skip
GPT_J = {
    "family": "gptj", "parameters": 6_050_882_784, "layers": 28, "hidden_size": 4096,
    "attention_heads": 16,
}  # fmt: skip
LLAMA_8B = {
    "family": "llama", "parameters": 8_030_261_248, "layers": 32, "hidden_size": 4096,
    "attention_heads": 32, "key_value_heads": 8,
}  # fmt: skip
# GPT-2 XL: 48 layers, 25 heads of 64.
GPT2_XL = {
    "parameters": 1_557_611_200, "layers": 48, "hidden_size": 1600, "attention_heads": 25,
}  # fmt: skip
DEEPSEEK_V3 = {
    "family": "deepseek_v3", "parameters": 684_489_845_504, "layers": 61, "hidden_size": 7168,
    "attention_heads": 128, "latent_size": 576,
}  # fmt: skip
QWEN_72B = {
    "family": "qwen2", "parameters": 72_706_203_648, "layers": 80, "hidden_size": 8192,
    "attention_heads": 64, "key_value_heads": 8,
}  # fmt: skip
LLAMA_405B = {
    "family": "llama", "parameters": 405_853_388_800, "layers": 126, "hidden_size": 16384,
    "attention_heads": 128, "key_value_heads": 8,
}  # fmt: skip
QWEN_235B = {
    "family": "qwen3_moe", "parameters": 235_093_634_560, "layers": 94, "hidden_size": 4096,
    "attention_heads": 64, "key_value_heads": 4, "head_size": 128, "experts": 128,
    "active_experts": 8, "quantization": "fp8",
}  # fmt: skip
GEMMA_3_27B = {
    "family": "gemma3", "parameters": 27_432_406_640, "layers": 62, "hidden_size": 5376,
    "attention_heads": 32, "key_value_heads": 16, "head_size": 128, "sliding_window": 1024,
    "windowed_layers": 52,
}  # fmt: skip
QWEN_3_NEXT = {
    "family": "qwen3_next", "parameters": 81_324_862_720, "layers": 48, "hidden_size": 2048,
    "attention_heads": 16, "key_value_heads": 2, "head_size": 256, "cached_layers": 12,
}  # fmt: skip
BERT = {"family": "bert", "parameters": 109_482_240}
TOKENS = {"max_input_tokens": 512, "max_new_tokens": 128}


def lmi(framework: str = "djl-fastertransformer", **more: Any) -> dict[str, Any]:
    version = {"djl-fastertransformer": "0.21.0", "djl-deepspeed": "0.23.0"}.get(
        framework, "0.29.0"
    )
    return {"container": "lmi", "framework": framework, "version": version} | more


def vllm(**more: Any) -> dict[str, Any]:
    return lmi("djl-lmi", dtype="bf16", max_rolling_batch_size=32, **TOKENS) | more


def triton(**more: Any) -> dict[str, Any]:
    return {"container": "triton", "version": "25.09"} | TOKENS | more


NEURON = {
    "container": "neuron",
    "framework": "neuron",
    "task": "question-answering",
    "objective": "throughput",
    "sequence_length": 128,
}
NEURONX = NEURON | {"framework": "neuronx"}
LATENCY = {"objective": "latency"}


def neuron(**more: Any) -> dict[str, Any]:
    return NEURON | more


def custom(**more: Any) -> dict[str, Any]:
    image = f"{LOCAL.account}.dkr.ecr.us-east-1.amazonaws.com/x:1"
    return {"container": "custom", "image_uri": image} | more


HUB = {"source": "hub", "repository": "google/flan-t5-xxl", "revision": "a" * 40}


def weights(size_gb: float | None, **more: Any) -> dict[str, Any]:
    return {"release": None, "weights": HUB, "size_gb": size_gb} | more


def checkpoint(**more: Any) -> dict[str, Any]:
    """Returns the sections of a config whose weights LMI serves."""
    serving = {"container": "lmi", "framework": "djl-lmi", "version": "0.36.0", "dtype": "fp16"}
    return {
        "serving": serving | more,
        "artifacts": weights(None),
        "endpoint": {"instances": ["ml.g5.xlarge"], "network_isolation": False},
    }


def scaling(low: int, high: int) -> dict[str, Any]:
    return {
        "min_instance_count": low,
        "max_instance_count": high,
        "target_invocations_per_instance_per_minute": 60,
    }


def reported(
    rule: Rule,
    environment: Environment = LOCAL,
    instance: InstanceFacts | None = None,
    **sections: Any,
) -> list[str]:
    """Returns what a rule finds in a config that no line of `reports` can say."""
    deployment = deployment_of(model_config(**sections), environment)
    if instance is not None:
        deployment = on_instance(deployment, instance)
    return [str(problem) for problem in rule(deployment)]
