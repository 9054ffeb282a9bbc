"""The settings of PyTorch's back end, as far as the handler names them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class PyTorchConfig:
    """Since 15 May 2025, before 0.21.0rc0, `enable_overlap_scheduler` has this other name."""

    disable_overlap_scheduler: bool = False
    kv_cache_dtype: str = "auto"
    attn_backend: str = "TRTLLM"
    use_cuda_graph: bool = False
    load_format: str = "auto"
    moe_backend: str = "CUTLASS"
