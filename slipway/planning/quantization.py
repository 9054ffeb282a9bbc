"""The bytes that a copy of the weights takes, as far as settings and the checkpoint's size tell.

Settings may quantise the weights, in the checkpoint or while they are loaded. A checkpoint may also
be quantised without a setting: its own config.json says so, and engines such as vLLM follow it.
Then its size is all that a config says of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from slipway.planning.deployment import Deployment

BYTES: Mapping[str, int] = {"auto": 2, "fp32": 4, "fp16": 2, "bf16": 2, "int8": 1, "fp8": 1}
"""Bytes of a weight by `dtype`. Engines make two of `auto`, whatever the checkpoint has."""

# Four bits, the scales of each group, and embeddings in two bytes: Llama-2-70B in AWQ has 0.564
# bytes a parameter (39.8 GB), gpt-oss-120b in MXFP4 has 0.558 (65.2 GB).
_FOUR_BITS, _EIGHT_BITS = 0.57, 1.0
_METHODS: Mapping[str, float] = {
    "auto_awq": _FOUR_BITS,
    "auto_gptq": _FOUR_BITS,
    "awq": _FOUR_BITS,
    "awq_marlin": _FOUR_BITS,
    "bitsandbytes": _EIGHT_BITS,
    "bitsandbytes4": _FOUR_BITS,
    "bitsandbytes8": _EIGHT_BITS,
    "deepspeedfp": _EIGHT_BITS,
    "dynamic_int8": _EIGHT_BITS,
    "experts_int8": _EIGHT_BITS,
    "fbgemm_fp8": _EIGHT_BITS,
    "fp8": _EIGHT_BITS,
    "gpt_oss_mxfp4": _FOUR_BITS,
    "gptq": _FOUR_BITS,
    "gptq_marlin": _FOUR_BITS,
    "gptq_marlin_24": _FOUR_BITS,
    "marlin": _FOUR_BITS,
    "modelopt_fp4": _FOUR_BITS,
    "mxfp4": _FOUR_BITS,
    "petit_nvfp4": _FOUR_BITS,
    "ptpc_fp8": _EIGHT_BITS,
    "smoothquant": _EIGHT_BITS,
    "squeezellm": _FOUR_BITS,
    "static_int8": _EIGHT_BITS,
}
# A checkpoint of this part of the plain size is quantised: nobody stores plain weights so.
_CERTAINLY_SMALLER = 0.8
# How much larger a quantised checkpoint may be than its method's bytes, for layers that it leaves.
_LEFT_AS_THEY_ARE = 1.3


@dataclass(frozen=True)
class StoredWeights:
    """The weights of one copy, as they lie on accelerators.

    Args:
        size_bytes: of all of them together.
        precision: for people: the dtype, or the quantisation.
    """

    size_bytes: float
    precision: str


def stored_weights(deployment: Deployment, dtype: str) -> StoredWeights:
    """Returns the bytes of one copy.

    A quantisation's own bytes count, unless the checkpoint is about as large or smaller: then its
    size is exact. A method without known bytes, and a checkpoint that is quantised without a
    setting, have the checkpoint's size.

    Args:
        deployment: of a config, or of its valid part.
        dtype: precision of the config.
    """
    config, method = deployment.config, deployment.quantization
    artifacts, plain = config.artifacts, config.model.parameters * BYTES[dtype]
    has_size = artifacts.size_gb is not None and artifacts.weights is not None
    size = artifacts.size_gb * 1e9 if artifacts.size_gb is not None and has_size else None
    if artifacts.compile is not None:
        size = None  # the compiled model is loaded
    if method is not None:
        each = _METHODS.get(method)
        if each is None:
            return StoredWeights(size or plain, method)
        quantized = config.model.parameters * each
        is_stored_so = size is not None and size <= quantized * _LEFT_AS_THEY_ARE
        return StoredWeights(size if size is not None and is_stored_so else quantized, method)
    if size is not None and dtype != "fp32" and size < plain * _CERTAINLY_SMALLER:
        return StoredWeights(size, f"{dtype}, quantized as in the checkpoint")
    return StoredWeights(plain, dtype)
