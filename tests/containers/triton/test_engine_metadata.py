"""What the engines of both graphs are built for."""

import pytest

from containers.tensorrt.engine_metadata import EngineLimits
from containers.triton.engine_metadata import decoder_profiles, encoder_profiles, max_past_tokens

BATCH, SOURCE, NEW = 4, 12, 10
LIMITS = EngineLimits(max_batch_size=BATCH, max_input_tokens=SOURCE, max_new_tokens=NEW)


def test_shapes_of_the_encoder():
    (profile,) = encoder_profiles(LIMITS)
    for name in ("input_ids", "attention_mask"):
        assert profile.of_input(name, (-1, -1)) == [(1, 1), (BATCH, SOURCE), (BATCH, SOURCE)]


def test_shapes_of_the_decoder():
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
    assert max_past_tokens(LIMITS) == NEW - 1


@pytest.mark.parametrize("new_tokens", [1, 2])
def test_least_limits(new_tokens):
    _, later = decoder_profiles(EngineLimits(1, 1, new_tokens))
    assert later.of_input("past_key_values.0.key", (-1, 8, -1, 64)) == [(1, 8, 1, 64)] * 3
