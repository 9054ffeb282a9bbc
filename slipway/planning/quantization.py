"""The bytes that a copy of the weights takes, as far as settings and the checkpoint's size tell.

Settings may quantise the weights, in the checkpoint or while they are loaded. A checkpoint may also
be quantised without a setting: `model.quantization` says so, and engines such as vLLM follow the
checkpoint's own config.json. Embeddings and the output layer stay in two bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from slipway.config.sections.model import Model
from slipway.facts.instances import Accelerator
from slipway.planning.deployment import Deployment

BYTES: Mapping[str, int] = {"auto": 2, "fp32": 4, "fp16": 2, "bf16": 2, "int8": 1, "fp8": 1}
"""Bytes of a weight by `dtype`. Engines make two of `auto`, whatever the checkpoint has."""

# Bits of a weight with its share of scales and zero points: groups of 128 (16 + 4 bits) in AWQ and
# GPTQ, of 32 (8) in MXFP4, of 16 (8) in NVFP4, of 64 (32) in bitsandbytes.
_MXFP4, _EIGHT = 4.25, 8.0
_METHODS: Mapping[float, str] = {
    4.16: "auto_awq auto_gptq awq awq_marlin gptq gptq_marlin gptq_marlin_24 marlin squeezellm",
    _MXFP4: "gpt_oss_mxfp4 mxfp4",
    4.5: "bitsandbytes4 modelopt_fp4 nvfp4 petit_nvfp4",
    _EIGHT: "bitsandbytes bitsandbytes8 deepspeedfp dynamic_int8 experts_int8 fbgemm_fp8 fp8 "
    "modelopt ptpc_fp8 smoothquant static_int8",
}
_BITS = {method: bits for bits, methods in _METHODS.items() for method in methods.split()}
# The same methods where nobody says how large the embeddings are: Llama-3-70B in AWQ has 0.564
# bytes a parameter (39.8 GB), gpt-oss-120b in MXFP4 has 0.558 (65.2 GB).
_FOUR_BIT_BYTES, _EIGHT_BIT_BYTES = 0.57, 1.0
# A checkpoint of this part of the plain size is quantised: nobody stores plain weights so.
_CERTAINLY_SMALLER = 0.8
# How much larger a quantised checkpoint may be than its method's bytes, for layers that it leaves.
_LEFT_AS_THEY_ARE = 1.3


@dataclass(frozen=True)
class StoredWeights:
    """The bytes of the weights of one copy, and their dtype or quantisation for people."""

    size_bytes: float
    precision: str


def stored_weights(deployment: Deployment, dtype: str) -> StoredWeights:
    """Returns the bytes of one copy.

    The size of a checkpoint that is stored quantised is exact. Otherwise a quantisation's own bytes
    count, unless the checkpoint is about as large or smaller. A method without known bytes has the
    checkpoint's size.
    """
    config, stored = deployment.config, deployment.config.model.quantization
    method = deployment.quantization or stored
    artifacts, plain = config.artifacts, config.model.parameters * BYTES[dtype]
    has_size = artifacts.size_gb is not None and artifacts.weights is not None
    size = artifacts.size_gb * 1e9 if artifacts.size_gb is not None and has_size else None
    if artifacts.compile is not None:
        size = None  # the compiled model is loaded
    if method is not None:
        quantized = _quantized_bytes(config.model, method)
        if quantized is None:
            return StoredWeights(size or plain, method)
        is_stored_so = stored is not None or (size or 0) <= quantized * _LEFT_AS_THEY_ARE
        return StoredWeights(size if size is not None and is_stored_so else quantized, method)
    if size is not None and dtype != "fp32" and size < plain * _CERTAINLY_SMALLER:
        return StoredWeights(size, f"{dtype}, quantized as in the checkpoint")
    return StoredWeights(plain, dtype)


def _quantized_bytes(model: Model, method: str) -> float | None:
    bits = _BITS.get(method.replace("-", "_"))
    if bits is None:
        return None
    width, vocabulary, is_tied = model.hidden_size, model.vocabulary_size, model.tied_embeddings
    if width is None or vocabulary is None or is_tied is None:
        flat = _FOUR_BIT_BYTES if bits < _EIGHT else _EIGHT_BIT_BYTES
        return model.parameters * flat
    in_two_bytes = vocabulary * width * (1 if is_tied else 2)
    heads, layers = model.attention_heads, model.layers
    # gpt-oss keeps its attention in two bytes.
    if bits == _MXFP4 and heads is not None and layers is not None:
        size = model.head_size or width // heads
        in_two_bytes += layers * 2 * width * size * (heads + (model.key_value_heads or heads))
    in_two_bytes = min(in_two_bytes, model.parameters)
    return 2 * in_two_bytes + (model.parameters - in_two_bytes) * bits / 8


# The compute capability that brought bf16.
_BF16_SINCE = 80


def precision_of_two_bytes(deployment: Deployment, accelerator: Accelerator) -> str | None:
    """Returns a precision of two bytes in which any server answers well, or None.

    T5 in fp16 answers degraded text (facts: lmi).
    """
    if deployment.config.model.family != "t5":
        return "fp16"
    return "bf16" if has_bf16(accelerator) else None


def has_bf16(accelerator: Accelerator) -> bool:
    """Returns whether an accelerator has bf16, which came with NVIDIA's Ampere."""
    capability = accelerator.compute_capability
    return capability is None or int(capability.removeprefix("sm")) >= _BF16_SINCE
