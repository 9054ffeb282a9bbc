"""The precisions of weights that a server of any kind may be told."""

from typing import Literal

Dtype = Literal["fp32", "fp16", "bf16", "int8", "fp8"]
# `auto` is the checkpoint's own.
LmiDtype = Literal["auto", "fp32", "fp16", "bf16", "int8", "fp8"]
