"""The settings of PyTorch's back end, as far as the handler names them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class PyTorchConfig:
    """Since 15 May 2025, before 0.21.0rc0, `enable_overlap_scheduler` has this other name."""

    disable_overlap_scheduler: bool = False
