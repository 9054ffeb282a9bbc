"""`model`: the network itself, as far as planning has to know it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from slipway.config.sections.base import Section

Family = Literal[
    "gpt2", "gpt_neo", "gptj", "gpt_neox", "opt", "bloom", "llama", "mistral", "qwen2", "t5",
    "bert", "distilbert", "roberta", "xlm_roberta", "other",
]  # fmt: skip


class Model(Section):
    """The network itself; where its shape is given, the memory estimate has the cache in it."""

    family: Family = Field(
        description="Architecture of the network; `other` turns the checks that need one off.",
        examples=["gpt2"],
    )
    parameters: int = Field(
        gt=0,
        description="Number of weights of the released model, shown in plans and tags.",
        examples=[1_557_611_200],
    )
    layers: int | None = Field(
        None, ge=1, le=1000,
        description="Transformer layers (of the decoder, where there are two stacks).",
        examples=[48],
    )  # fmt: skip
    hidden_size: int | None = Field(
        None, ge=1, le=100_000, description="Width of the hidden state.", examples=[1600]
    )
    attention_heads: int | None = Field(
        None, ge=1, le=1000,
        description="Attention heads; a tensor parallel degree has to divide them.",
        examples=[25],
    )  # fmt: skip
    key_value_heads: int | None = Field(
        None, ge=1, le=1000,
        description="Heads of keys and values where they are fewer (grouped-query attention).",
        examples=[8],
    )  # fmt: skip
    head_size: int | None = Field(
        None, ge=1, le=10_000,
        description="Width of one head where it is not `hidden_size` / `attention_heads`.",
        examples=[64],
    )  # fmt: skip
