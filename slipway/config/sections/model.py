"""`model`: the network itself, as far as planning has to know it."""

from typing import Annotated

from pydantic import Field

from slipway.config.sections.base import Section

_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.]*$", max_length=100)]
_Count = Annotated[int, Field(ge=1, le=1000)]
_Width = Annotated[int, Field(ge=1, le=100_000)]
_Experts = Annotated[int, Field(ge=1, le=10_000)]


class Model(Section):
    """The network itself. With its shape, the memory estimate includes the key/value cache."""

    family: _Name = Field(
        description="Architecture of the network: `model_type` in the checkpoint's config.json, "
        "with `_` for `-`. `other` turns off the checks that need to know it.",
        examples=["gpt2", "qwen3_moe"],
    )
    architecture: _Name | None = Field(
        None,
        description="Class of the network: the entry of `architectures` in config.json. Engines "
        "look a network up by it.",
        examples=["Qwen3MoeForCausalLM"],
    )
    parameters: int = Field(
        gt=0,
        description="Number of weights of the released model. Plans and tags show it.",
        examples=[1_557_611_200],
    )
    layers: _Count | None = Field(
        None,
        description="Transformer layers. For a model with an encoder and a decoder, the decoder's.",
        examples=[48],
    )
    hidden_size: _Width | None = Field(
        None, description="Width of the hidden state.", examples=[1600]
    )
    attention_heads: _Count | None = Field(
        None,
        description="Attention heads. A tensor parallel degree has to divide this number.",
        examples=[25],
    )
    key_value_heads: _Count | None = Field(
        None,
        description="Heads of keys and values, if fewer than `attention_heads` (grouped-query"
        " attention).",
        examples=[8],
    )
    head_size: _Experts | None = Field(
        None,
        description="Width of one head, if it is not `hidden_size` / `attention_heads`.",
        examples=[64],
    )
    latent_size: _Width | None = Field(
        None,
        description="Numbers that latent attention (DeepSeek) keeps of a token in a layer, in "
        "place of keys and values: `kv_lora_rank` + `qk_rope_head_dim`.",
        examples=[576],
    )
    cached_layers: int | None = Field(
        None,
        ge=0,
        le=1000,
        description="Layers that keep keys and values, if fewer than `layers` (Mamba, linear "
        "attention).",
        examples=[12],
    )
    state_bytes: int | None = Field(
        None,
        ge=1,
        le=10_000_000_000,
        description="Bytes that all layers of Mamba or linear attention together keep of one "
        "request, however long it is.",
        examples=[49_082_368],
    )
    sliding_window: int | None = Field(
        None, ge=1, description="Tokens that a layer with a window attends to.", examples=[1024]
    )
    windowed_layers: _Count | None = Field(
        None, description="Layers that keep no more than `sliding_window` tokens.", examples=[28]
    )
    positions: int | None = Field(
        None,
        ge=1,
        description="Tokens of the longest text, prompt and answer together.",
        examples=[40_960],
    )
    vocabulary_size: int | None = Field(
        None,
        ge=1,
        le=10_000_000,
        description="Tokens of the vocabulary. Embeddings are rarely quantised, so that they "
        "count in the memory of a quantised model.",
        examples=[151_936],
    )
    tied_embeddings: bool | None = Field(
        None,
        description="Whether the output layer shares the weights of the embeddings.",
        examples=[False],
    )
    experts: _Experts | None = Field(
        None, description="Experts of a layer (mixture of experts).", examples=[128]
    )
    active_experts: _Experts | None = Field(
        None, description="Experts of a layer that compute a token.", examples=[8]
    )
    quantization: str | None = Field(
        None,
        pattern=r"^[a-z0-9][a-z0-9_]*$",
        max_length=40,
        description="Method that the checkpoint's weights are stored in, such as `fp8`, `awq`, "
        "`gptq`, `mxfp4`, `nvfp4`, `bitsandbytes` or `compressed_tensors`. Absent for plain "
        "weights.",
        examples=["fp8"],
    )
