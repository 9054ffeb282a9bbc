"""The cache on a stand-in for the GPU's memory, through random operations, against plain arrays.

The engine's stand-in computes no model: its keys and values are numbers that tell the token, the
head and the tensor that they are of.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from containers.tensorrt.engine_metadata import EngineMetadata, ModelSizes, write_metadata
from containers.tensorrt.model_directory import ModelConfig
from containers.tensorrt.settings import GenerationSettings
from containers.tensorrt.stepping import Int64Array, StepInputs
from tests.containers.tensorrt.runtimes.machine import ABOUT, LIMITS, standin_machine
from tests.containers.tensorrt.runtimes.tensorrt_building import plan_of
from tests.containers.tensorrt.runtimes.tensorrt_types import Tensor, TensorIOMode

VOCABULARY = 3
CONFIG = ModelConfig(1, 1, 1, VOCABULARY, max_positions=1000, eos_token_ids=frozenset())
METADATA = EngineMetadata.of(LIMITS, ModelSizes(1, 1, 1, VOCABULARY), **ABOUT)


def arithmetic(inputs):
    """Keys and values of a token: its id, plus what tells head, tensor and place in the head."""
    tokens = inputs["input_ids"]
    outputs = {}
    for index, (name, past) in enumerate(
        (name, past) for name, past in inputs.items() if name.startswith("past_key_values.")
    ):
        _, heads, _, width = past.shape
        marks = np.arange(heads * width).reshape(1, heads, 1, width) + 100 * index
        new = (tokens[:, None, :, None] + marks).astype(past.dtype)
        present = np.concatenate([past, new], axis=2)
        outputs[name.replace("past_key_values", "present")] = present
    kind = inputs["past_key_values.0.key"].dtype
    return outputs | {"logits": np.zeros((len(tokens), 1, VOCABULARY), kind)}


@dataclass
class Twin:
    """A cache on the stand-in, and what it must be: tokens and mask."""

    cache: Any
    tokens: Int64Array
    mask: Int64Array


class Pair:
    """A session on stand-ins beside a plain model of what its caches hold."""

    def __init__(self, machine, session, metadata):
        self.cuda = machine.cuda
        self.session = session
        self.metadata = metadata

    def prefill(self, tokens, mask):
        inputs = StepInputs(tokens, mask, np.zeros_like(tokens))
        _, cache = self.session.step(inputs, np.ones(len(tokens)))
        return Twin(cache, tokens, mask)

    def step(self, twin, new):
        mask = np.pad(twin.mask, ((0, 0), (0, 1)), constant_values=1)
        inputs = StepInputs(new, mask, np.zeros_like(new))
        _, cache = self.session.step(inputs, np.ones(len(new)), twin.cache)
        return Twin(cache, np.concatenate([twin.tokens, new], axis=1), mask)

    def select(self, twin, rows, first_column):
        return Twin(
            self.session.select(twin.cache, rows, first_column),
            twin.tokens[rows, first_column:],
            twin.mask[rows, first_column:],
        )

    def concatenate(self, first, second):
        columns = max(first.tokens.shape[1], second.tokens.shape[1])

        def stacked(*arrays):
            return np.concatenate(
                [np.pad(each, ((0, 0), (columns - each.shape[1], 0))) for each in arrays]
            )

        return Twin(
            self.session.concatenate(first.cache, second.cache),
            stacked(first.tokens, second.tokens),
            stacked(first.mask, second.mask),
        )

    def content(self, twin):
        """Everything in a cache, tensor by tensor, read from the device's memory."""
        sizes, caches = self.metadata, self.session._caches
        shape = (twin.cache.rows, sizes.heads, twin.cache.columns, sizes.head_dim)
        dtype = np.dtype(np.float16 if sizes.precision == "fp16" else np.float32)
        self.session._stream.synchronize()
        return [
            self.cuda.memory(address, int(np.prod(shape)) * dtype.itemsize)
            .view(dtype)
            .reshape(shape)
            for address in caches.addresses(twin.cache.arena, twin.cache.columns)
        ]


def open_pair(machine, directory, metadata):
    """Opens an engine of any sizes, for the arithmetic above."""
    session_module = machine.module("session")
    contract = session_module._contract(metadata)
    profiles = [
        {name: contract.shapes(number, name) for name in contract.inputs}
        for number in range(len(contract.profiles))
    ]
    tensors = [
        Tensor(name, shape, kind, mode)
        for mode, of_mode in (
            (TensorIOMode.INPUT, contract.inputs),
            (TensorIOMode.OUTPUT, contract.outputs),
        )
        for name, (kind, shape) in of_mode.items()
    ]
    (directory / "model.engine").write_bytes(plan_of("", profiles, tensors))
    write_metadata(directory, metadata)
    session = session_module.open_engine_session(
        directory,
        replace(CONFIG, layers=metadata.layers, heads=metadata.heads, head_dim=metadata.head_dim),
        GenerationSettings(
            max_input_tokens=metadata.max_input_tokens, max_new_tokens=metadata.max_new_tokens
        ),
        max_batch_size=metadata.max_batch_size,
    )
    return Pair(machine, session, metadata)


@pytest.fixture(scope="module")
def arithmetic_machine():
    with standin_machine(arithmetic) as made:
        yield made


# Widths that make planes begin at odd places but for the care that is taken: 2, 6, 48, 128 bytes.
SIZES = st.builds(
    replace,
    st.just(replace(METADATA, max_input_tokens=9, max_new_tokens=12)),
    layers=st.integers(1, 3),
    heads=st.integers(1, 5),
    head_dim=st.sampled_from([1, 3, 24, 64]),
    max_batch_size=st.integers(1, 6),
    # Sums of half precision would have to be of few numbers to be exact.
    precision=st.just("fp32"),
)


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), sizes=SIZES)
def test_random_operations_equal_plain_arrays(arithmetic_machine, tmp_path, data, sizes):
    pair = open_pair(arithmetic_machine, tmp_path, sizes)
    live = None
    # What happens to the live batch; it may always be forgotten.
    for _ in range(data.draw(st.integers(1, 14), label="operations")):
        room = sizes.max_batch_size - (0 if live is None else len(live.tokens))
        columns = 0 if live is None else live.tokens.shape[1]
        possible = ["prefill and forget"]
        possible += ["join"] * 2 if room else []
        possible += ["select", "select", "forget"] if live is not None else []
        possible += ["step"] * 4 if live is not None and columns <= sizes.max_past_tokens else []
        operation = data.draw(st.sampled_from(possible), label="operation")
        if operation in ("prefill and forget", "join"):
            most = room if operation == "join" else sizes.max_batch_size
            joining = pair.prefill(*data.draw(prompts(most, sizes.max_input_tokens)))
            if operation == "join":
                live = joining if live is None else pair.concatenate(live, joining)
        elif live is not None and operation == "step":
            new = data.draw(token_ids(len(live.tokens), 1))
            live = pair.step(live, new)
        elif live is not None and operation == "select":
            row = st.integers(0, len(live.tokens) - 1)
            rows = data.draw(st.lists(row, min_size=1, max_size=sizes.max_batch_size), label="rows")
            padding = int(live.mask[rows].any(axis=0).argmax())
            first_column = data.draw(st.integers(0, padding), label="first column")
            live = pair.select(live, rows, first_column)
        else:
            live = None
        if live is not None:
            assert_holds(pair, live)


def token_ids(rows, columns):
    numbers = st.lists(st.integers(0, 99), min_size=rows * columns, max_size=rows * columns)
    return numbers.map(lambda found: np.array(found, dtype=np.int64).reshape(rows, columns))


@st.composite
def prompts(draw, most_rows, most_columns):
    lengths = draw(st.lists(st.integers(1, most_columns), min_size=1, max_size=most_rows))
    columns = max(lengths)
    mask = np.array([[0] * (columns - length) + [1] * length for length in lengths])
    return draw(token_ids(len(lengths), columns)), mask.astype(np.int64)


def assert_holds(pair, twin):
    """Compares all that is not masked, and that the rest can be multiplied by nothing."""
    sizes = pair.metadata
    marks = np.arange(sizes.heads * sizes.head_dim).reshape(1, sizes.heads, 1, sizes.head_dim)
    shown = np.broadcast_to(
        twin.mask.astype(bool)[:, None, :, None],
        (len(twin.mask), sizes.heads, twin.mask.shape[1], sizes.head_dim),
    )
    for index, content in enumerate(pair.content(twin)):
        assert np.isfinite(content).all()
        expected = twin.tokens[:, None, :, None] + marks + 100 * index
        assert (content == expected)[shown].all()


@pytest.mark.parametrize("longer_first", [True, False])
@pytest.mark.parametrize("precision", ["fp16", "fp32"])
def test_joined_rows_are_padded_with_zeros(arithmetic_machine, tmp_path, longer_first, precision):
    metadata = replace(METADATA, heads=3, layers=2, head_dim=5, precision=precision)
    pair = open_pair(arithmetic_machine, tmp_path, metadata)
    long = pair.prefill(np.full((2, 7), 1), np.ones((2, 7), dtype=np.int64))
    short = pair.prefill(np.full((1, 3), 1), np.ones((1, 3), dtype=np.int64))
    both = pair.concatenate(long, short) if longer_first else pair.concatenate(short, long)
    row = 2 if longer_first else 0
    for content in pair.content(both):
        assert (content[row, :, :4] == 0).all()
        assert (content[row, :, 4:] != 0).all()


def layout_of(machine, sizes):
    of_halves = replace(sizes, precision="fp16")
    return machine.module("cache").CacheLayout.of(of_halves, sizes.max_past_tokens + 1)


@settings(deadline=None)
@given(sizes=SIZES)
def test_every_tensor_lies_in_its_arena_and_is_aligned(arithmetic_machine, sizes):
    layout = layout_of(arithmetic_machine, sizes)
    for columns in range(1, layout.max_columns + 1):
        plane_bytes = layout.plane_bytes(columns)
        assert plane_bytes % 256 == 0
        assert plane_bytes >= layout.max_rows * layout.heads * layout.line_bytes(columns)
        assert layout.tensors * plane_bytes <= layout.arena_bytes
    # Widths of a model leave next to nothing unused.
    layout = layout_of(arithmetic_machine, replace(sizes, head_dim=64))
    line_bytes = layout.line_bytes(layout.max_columns)
    least = layout.tensors * layout.max_rows * layout.heads * line_bytes
    assert layout.arena_bytes <= least + layout.tensors * line_bytes


@pytest.mark.parametrize(
    ("rows", "first_column"), [([], 0), ([2], 0), ([-1], 0), ([0], 3), ([0] * 7, 0)]
)
def test_rows_that_are_not_there_are_a_bug(arithmetic_machine, tmp_path, rows, first_column):
    pair = open_pair(arithmetic_machine, tmp_path, METADATA)
    twin = pair.prefill(np.ones((2, 3), dtype=np.int64), np.ones((2, 3), dtype=np.int64))
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the whole message is asserted
        pair.session.select(twin.cache, rows, first_column)
    assert str(caught.value) == (
        f"rows {rows} from column {first_column} of a cache of 2 rows and 3 columns"
    )


def test_too_many_rows_together_are_a_bug(arithmetic_machine, tmp_path):
    pair = open_pair(arithmetic_machine, tmp_path, METADATA)
    ids = np.ones((4, 1), dtype=np.int64)
    first, second = pair.prefill(ids, ids), pair.prefill(ids, ids)
    with pytest.raises(ValueError, match=r"^8 rows of a cache for at most 6$"):
        pair.session.concatenate(first.cache, second.cache)
