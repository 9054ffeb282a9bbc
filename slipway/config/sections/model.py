"""`model`: the network itself, as far as planning has to know it."""

from typing import Literal

from pydantic import Field

from slipway.config.sections.base import Section

Family = Literal[
    "gpt2",
    "gpt_neo",
    "gptj",
    "gpt_neox",
    "opt",
    "bloom",
    "llama",
    "mistral",
    "qwen2",
    "t5",
    "bert",
    "distilbert",
    "roberta",
    "xlm_roberta",
    "other",
]


class Model(Section):
    """The network itself. With its shape, the memory estimate includes the key/value cache."""

    family: Family = Field(
        description="Architecture of the network. `other` turns off the checks that need to "
        "know it.",
        examples=["gpt2"],
    )
    parameters: int = Field(
        gt=0,
        description="Number of weights of the released model. Plans and tags show it.",
        examples=[1_557_611_200],
    )
    layers: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="Transformer layers. For a model with an encoder and a decoder, the decoder's.",
        examples=[48],
    )
    hidden_size: int | None = Field(
        None, ge=1, le=100_000, description="Width of the hidden state.", examples=[1600]
    )
    attention_heads: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="Attention heads. A tensor parallel degree has to divide this number.",
        examples=[25],
    )
    key_value_heads: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="Heads of keys and values, if fewer than `attention_heads` (grouped-query"
        " attention).",
        examples=[8],
    )
    head_size: int | None = Field(
        None,
        ge=1,
        le=10_000,
        description="Width of one head, if it is not `hidden_size` / `attention_heads`.",
        examples=[64],
    )
