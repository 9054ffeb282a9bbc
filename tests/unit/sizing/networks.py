"""Shapes of published networks."""

from slipway.config.sections.model import Model

LLAMA = Model(
    family="llama",
    parameters=6_738_415_616,
    layers=32,
    hidden_size=4096,
    attention_heads=32,
    vocabulary_size=32_000,
    tied_embeddings=False,
)
GPT_OSS = Model(
    family="gpt_oss",
    parameters=20_914_757_184,
    layers=24,
    hidden_size=2880,
    attention_heads=64,
    key_value_heads=8,
    head_size=64,
    sliding_window=128,
    windowed_layers=12,
    experts=32,
    active_experts=4,
    vocabulary_size=201_088,
    tied_embeddings=False,
)
