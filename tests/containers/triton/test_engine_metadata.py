"""What the engines of both graphs are built for, and whether they can serve here."""

from dataclasses import replace
from typing import Any

import pytest

from containers.serving.predictor import ModelLoadError
from containers.tensorrt.engine_metadata import EngineLimits, EngineMetadata
from containers.triton.engine_metadata import (
    check_engines,
    decoder_profiles,
    encoder_profiles,
    max_past_tokens,
)
from containers.triton.model_directory import SequenceConfig

BATCH, SOURCE, NEW = 4, 12, 10
LIMITS = EngineLimits(max_batch_size=BATCH, max_input_tokens=SOURCE, max_new_tokens=NEW)
METADATA = EngineMetadata(
    tensorrt_version="10.13.3.9",
    compute_capability="sm86",
    gpu_name="NVIDIA A10G",
    graph_sha256="0123456789abcdef" * 4,
    precision="fp16",
    max_batch_size=BATCH,
    max_input_tokens=SOURCE,
    max_new_tokens=NEW,
    layers=6,
    heads=8,
    head_dim=64,
    vocabulary_size=32128,
)
CONFIG = SequenceConfig(
    layers=6,
    heads=8,
    head_dim=64,
    vocabulary_size=32128,
    start_token_id=0,
    end_token_ids=frozenset({1}),
)


def test_shapes_of_the_encoder() -> None:
    (profile,) = encoder_profiles(LIMITS)
    for name in ("input_ids", "attention_mask"):
        assert profile.of_input(name, (-1, -1)) == [(1, 1), (BATCH, SOURCE), (BATCH, SOURCE)]


def test_shapes_of_the_decoder() -> None:
    first, later = decoder_profiles(LIMITS)
    for profile in (first, later):
        assert profile.of_input("input_ids", (-1, -1)) == [(1, 1), (BATCH, 1), (BATCH, 1)]
        assert profile.of_input("encoder_attention_mask", (-1, -1)) == [
            (1, 1),
            (BATCH, SOURCE),
            (BATCH, SOURCE),
        ]
        assert profile.of_input("cross_key_values.2.value", (-1, 8, -1, 64)) == [
            (1, 8, 1, 64),
            (BATCH, 8, SOURCE, 64),
            (BATCH, 8, SOURCE, 64),
        ]
    past = ("past_key_values.0.key", (-1, 8, -1, 64))
    assert first.of_input(*past) == [(1, 8, 0, 64), (BATCH, 8, 0, 64), (BATCH, 8, 0, 64)]
    # The last new token is returned and never fed to the model.
    assert later.of_input(*past) == [
        (1, 8, 1, 64),
        (BATCH, 8, NEW // 2, 64),
        (BATCH, 8, NEW - 1, 64),
    ]
    assert max_past_tokens(LIMITS) == max_past_tokens(METADATA) == NEW - 1


@pytest.mark.parametrize("new_tokens", [1, 2])
def test_least_limits(new_tokens: int) -> None:
    _, later = decoder_profiles(EngineLimits(1, 1, new_tokens))
    assert later.of_input("past_key_values.0.key", (-1, 8, -1, 64)) == [(1, 8, 1, 64)] * 3


def check(metadata: EngineMetadata = METADATA, **changes: Any) -> None:
    asked: dict[str, Any] = {
        "tensorrt_version": "10.13.3.9",
        "compute_capability": "sm86",
        "config": CONFIG,
        "limits": LIMITS,
    }
    check_engines(metadata, **(asked | changes))


def test_engines_that_fit() -> None:
    check()
    check(limits=EngineLimits(1, 1, 1))


def test_every_mismatch_is_named() -> None:
    with pytest.raises(ModelLoadError) as error:
        check(
            tensorrt_version="10.8.0.43",
            compute_capability="sm75",
            config=replace(CONFIG, layers=12),
            limits=EngineLimits(BATCH + 1, SOURCE + 1, NEW + 1),
        )
    assert str(error.value) == (
        "the pair of encoder.engine and decoder.engine cannot serve here: it was built with "
        "TensorRT 10.13.3.9, and this container has 10.8.0.43; it was built for sm86 (NVIDIA "
        "A10G), and this GPU is sm75; its layers is 6, and config.json has 12; its max_batch_size "
        "is 4, and SLIPWAY_MAX_BATCH_SIZE asks for 5; its max_input_tokens is 12, and "
        "SLIPWAY_MAX_INPUT_TOKENS asks for 13; its max_new_tokens is 10, and "
        "SLIPWAY_MAX_NEW_TOKENS asks for 11; publish the model again, which builds the engine anew"
    )
