"""Caches in the host's memory, through random operations, against plain arrays."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from containers.tensorrt.runtimes.host_cache import HostCaches


def new_caches():
    return HostCaches(tensors=2, heads=3, head_dim=2)


def filled(cache, start):
    """Gives each value of a cache a number of its own; returns copies of the tensors."""
    for index, tensor in enumerate(cache.tensors):
        tensor[:] = np.arange(tensor.size).reshape(tensor.shape) + start + 100_000 * index
    return [tensor.copy() for tensor in cache.tensors]


def grown(caches, cache, start):
    """Does what a step does: writes the cache and a new column to another."""
    rows, _, columns, _ = cache.shape
    present = caches.reserve(rows, columns + 1)
    filled(present, start)
    for new, old in zip(present.tensors, cache.tensors, strict=True):
        new[:, :, :-1] = old
    cache.give_back()
    return present, [tensor.copy() for tensor in present.tensors]


def joined(first, second):
    columns = max(first[0].shape[2], second[0].shape[2])
    return [
        np.concatenate(
            [np.pad(each, ((0, 0), (0, 0), (columns - each.shape[2], 0), (0, 0))) for each in pair]
        )
        for pair in zip(first, second, strict=True)
    ]


@settings(max_examples=60)
@given(data=st.data())
def test_caches_hold_what_plain_arrays_hold(data):
    caches = new_caches()
    cache = caches.reserve(data.draw(st.integers(1, 4)), data.draw(st.integers(1, 9)))
    expected = filled(cache, 0)
    for turn in range(1, data.draw(st.integers(2, 12))):
        operation = data.draw(st.sampled_from(["step", "step", "join", "select", "forget"]))
        rows, _, columns, _ = cache.shape
        if operation == "step":
            cache, expected = grown(caches, cache, turn)
        elif operation == "join":
            new_rows, new_columns = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 99))
            joining = caches.reserve(new_rows, new_columns)
            expected = joined(expected, filled(joining, turn))
            cache = caches.concatenate(cache, joining)
        elif operation == "select":
            kept = data.draw(st.lists(st.integers(0, rows - 1), min_size=1, max_size=9))
            first_column = data.draw(st.sampled_from([0, 0, columns - 1]))
            expected = [tensor[kept, :, first_column:] for tensor in expected]
            cache = caches.select(cache, kept, first_column)
        else:
            cache = caches.reserve(rows, columns)
            expected = filled(cache, turn)
        for found, wanted in zip(cache.tensors, expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_steps_take_turns_in_two_memories():
    caches = new_caches()
    cache = caches.reserve(4, 5)
    filled(cache, 0)
    seen = []
    for turn in range(8):
        seen.append(cache.memory.addresses)
        cache, _ = grown(caches, cache, turn)
    assert seen[0] != seen[1]
    assert seen == [seen[0], seen[1]] * 4


def test_a_row_that_ends_and_its_successor_move_no_other_row():
    caches = new_caches()
    cache = caches.reserve(4, 5)
    before, place = filled(cache, 0), cache.memory.addresses
    cache = caches.select(cache, [0, 3, 2], 0)
    joining = caches.reserve(1, 2)
    new = filled(joining, 7)
    cache = caches.concatenate(cache, joining)
    assert cache.memory.addresses == place
    for found, wanted in zip(
        cache.tensors, joined([tensor[[0, 3, 2]] for tensor in before], new), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


def test_a_forgotten_cache_leaves_its_memory():
    caches = new_caches()
    place = caches.reserve(4, 5).memory.addresses
    assert caches.reserve(4, 5).memory.addresses == place


def test_a_cache_is_used_once():
    caches = new_caches()
    cache = caches.reserve(1, 1)
    caches.select(cache, [0], 0)
    with pytest.raises(RuntimeError, match=r"^the cache was used before, and is no more$"):
        caches.select(cache, [0], 0)
