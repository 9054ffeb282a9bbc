"""What `LLM` is told: `TrtLlmArgs`, the arguments of the TensorRT back end."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class QuantAlgo:
    """Imported by the handler, for engines that it does not build."""


class QuantConfig:
    """Imported by the handler, for engines that it does not build."""


class CalibConfig:
    """Imported by the handler, for engines that it does not build."""


class KvCacheConfig(BaseModel):
    """The cache of keys and values; the handler always makes one."""

    model_config = ConfigDict(extra="forbid")

    enable_block_reuse: bool = True
    max_tokens: int | None = None
    max_attention_window: list[int] | None = None
    sink_token_length: int | None = None
    free_gpu_memory_fraction: float | None = None
    host_cache_size: int | None = None
    onboard_blocks: bool = True
    cross_kv_cache_fraction: float | None = None
    secondary_offload_min_priority: int | None = None
    event_buffer_max_size: int = 0


class TrtLlmArgs(BaseModel):
    """The fields that the handler fills.

    0.21.0rc1 keeps a field that it does not know and does nothing with it (`extra='allow'` in the
    reference of that day). Of those the handler sends one, `pytorch_config`; any other is refused
    here. 0.21.0 refuses that one, too: "LLM got invalid argument: pytorch_config".
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    model: str
    tokenizer: str | None = None
    tokenizer_mode: Literal["auto", "slow"] = "auto"
    skip_tokenizer_init: bool = False
    trust_remote_code: bool = False
    tensor_parallel_size: int = 1
    dtype: str = "auto"
    revision: str | None = None
    tokenizer_revision: str | None = None
    pipeline_parallel_size: int = 1
    context_parallel_size: int = 1
    moe_tensor_parallel_size: int | None = None
    moe_expert_parallel_size: int | None = None
    enable_attention_dp: bool = False
    load_format: Literal["auto", "dummy"] = "auto"
    kv_cache_config: KvCacheConfig | None = None
    enable_chunked_prefill: bool = False
    guided_decoding_backend: str | None = None
    iter_stats_max_iterations: int | None = None
    request_stats_max_iterations: int | None = None
    batching_type: str | None = None
    normalize_log_probs: bool = False
    max_batch_size: int | None = None
    max_input_len: int = 1024
    max_seq_len: int | None = None
    max_beam_width: int = 1
    max_num_tokens: int | None = None
    backend: str | None = None
    gather_generation_logits: bool = False
    num_postprocess_workers: int = 0
    auto_parallel: bool = False
    auto_parallel_world_size: int | None = None
    enable_build_cache: bool = False
    embedding_parallel_mode: str = "SHARDING_ALONG_VOCAB"
    pytorch_config: Any = None

    def refuse_what_is_not_here(self):
        """Says which setting asks for what the stand-in lacks; other defaults are its own."""
        same = type(self)(model=self.model).model_dump()
        taken = {
            # They have no effect on an engine that is there already.
            *("model", "dtype", "trust_remote_code", "max_input_len", "max_seq_len"),
            *("max_num_tokens", "enable_build_cache", "embedding_parallel_mode"),
            # There is one GPU's worth of one process, which takes what comes.
            *("max_batch_size", "kv_cache_config"),
        }
        for name, value in self.model_dump().items():
            if name not in taken and value != same[name]:
                raise NotImplementedError(f"the stand-in has no {name}={value!r}")
