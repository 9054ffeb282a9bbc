"""The sizes that engines are built for."""

import pytest

from containers.tensorrt.compile.profiles import EngineBuildError, profiles
from containers.tensorrt.engine_metadata import EngineLimits

BATCH, PROMPT, NEW = 4, 12, 10
LIMITS = EngineLimits(max_batch_size=BATCH, max_input_tokens=PROMPT, max_new_tokens=NEW)


def test_shapes_of_inputs():
    prefill, decode = profiles(LIMITS)
    longest = PROMPT + NEW
    for name in ("input_ids", "position_ids"):
        assert prefill.of_input(name, (-1, -1)) == [(1, 1), (BATCH, PROMPT), (BATCH, PROMPT)]
        assert decode.of_input(name, (-1, -1)) == [(1, 1), (BATCH, 1), (BATCH, 1)]
    assert prefill.of_input("attention_mask", (-1, -1)) == [
        (1, 1),
        (BATCH, PROMPT),
        (BATCH, PROMPT),
    ]
    # One column for the token of the step.
    assert decode.of_input("attention_mask", (-1, -1)) == [
        (1, 2),
        (BATCH, PROMPT + 1),
        (BATCH, longest),
    ]
    past = ("past_key_values.3.key", (-1, 5, -1, 32))
    assert prefill.of_input(*past) == [(1, 5, 0, 32), (BATCH, 5, 0, 32), (BATCH, 5, 0, 32)]
    assert decode.of_input(*past) == [
        (1, 5, 1, 32),
        (BATCH, 5, PROMPT, 32),
        (BATCH, 5, longest - 1, 32),
    ]


def test_least_limits():
    prefill, decode = profiles(EngineLimits(1, 1, 1))
    one = (1, 1, 1)
    assert prefill.inputs["input_ids"] == decode.inputs["input_ids"] == (one, one)
    assert decode.inputs["past_key_values"] == (one, None, one, None)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("pixel_values", (-1, 3, 224, 224)),
        ("input_ids", (-1,)),
        ("past_key_values.0.key", (-1, -1, -1, 32)),
    ],
)
def test_inputs_of_other_graphs_are_refused(name, shape):
    with pytest.raises(EngineBuildError) as error:
        profiles(LIMITS)[0].of_input(name, shape)
    assert str(error.value) == (
        f"the graph is not a step graph: it has an input {name} of shape {list(shape)}"
    )
