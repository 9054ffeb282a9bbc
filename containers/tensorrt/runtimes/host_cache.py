"""A batch's keys and values in the host's memory, with room for the rows and columns to come.

ONNX Runtime reads a cache and writes the next one, with a column more, beside it. Both lie in
memory that the steps use in turn, since fresh memory costs a page fault for every 4 KiB. There is
more of it than the cache takes. Rows at the end are dropped where they lie, and new rows are put
below the others, which are not copied. Room that no cache has reached takes no memory of the host.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from containers.tensorrt.stepping import Float32Array, moves_in_place

# Each memory has room for this many times the values of its first cache, and for a small batch.
_ROOM: Final = 2
_LEAST_ROWS: Final = 8
_LEAST_COLUMNS: Final = 64
# At most a batch's cache, its next cache and a cache that joins it are in use.
_MOST_SPARES: Final = 3


class Memory:
    """Memory for one cache: a piece for each tensor, from whose beginning the cache lies dense."""

    def __init__(self, pieces: Sequence[Float32Array]) -> None:
        self.values: Final = pieces[0].size
        self.pieces: Final = pieces

    @functools.cached_property
    def addresses(self) -> list[int]:
        return [piece.ctypes.data for piece in self.pieces]


class HostCache:
    """A cache: its memory, and its shape, [rows, heads, columns, head_dim] for each tensor.

    A cache that nothing refers to leaves its memory to `spares`.
    """

    __slots__ = ("_memory", "_spares", "shape")

    def __init__(
        self, memory: Memory, shape: tuple[int, int, int, int], spares: list[Memory]
    ) -> None:
        self._memory: Memory | None = memory
        self._spares: Final = spares
        self.shape: Final = shape

    def __del__(self) -> None:
        if self._memory is not None:
            self._spares.append(self._memory)

    @property
    def memory(self) -> Memory:
        """Returns the memory; raises a RuntimeError if the cache was used before."""
        if self._memory is None:
            raise RuntimeError("the cache was used before, and is no more")
        return self._memory

    @property
    def tensors(self) -> list[Float32Array]:
        """Returns the tensors: key 0, value 0, key 1, ...; they share the cache's memory."""
        values = math.prod(self.shape)
        return [piece[:values].reshape(self.shape) for piece in self.memory.pieces]

    def reshaped(self, shape: tuple[int, int, int, int]) -> HostCache:
        """Returns a cache of another shape in this memory; this cache cannot be used again."""
        taken = HostCache(self.memory, shape, self._spares)
        self._memory = None
        return taken

    def give_back(self) -> None:
        """Leaves the memory to other caches; the cache cannot be used again."""
        self._spares.append(self.memory)
        self._memory = None


class HostCaches:
    """Makes caches of a model, and moves their rows.

    There are two `tensors`, of keys and of values, for each layer.
    """

    def __init__(self, *, tensors: int, heads: int, head_dim: int) -> None:
        self._tensors = tensors
        self._heads = heads
        self._head_dim = head_dim
        self._spares: list[Memory] = []

    def reserve(self, rows: int, columns: int) -> HostCache:
        """Returns a cache whose tensors hold no values yet."""
        shape = self._shape(rows, columns)
        needed = math.prod(shape)
        # The smallest first, which are of no use any more once the batch has grown.
        self._spares.sort(key=lambda spare: spare.values)
        del self._spares[:-_MOST_SPARES]
        for index, spare in enumerate(self._spares):
            if spare.values >= needed:
                return HostCache(self._spares.pop(index), shape, self._spares)
        least = math.prod(self._shape(_LEAST_ROWS, _LEAST_COLUMNS))
        values = max(_ROOM * needed, least)
        pieces = [np.empty(values, dtype=np.float32) for _ in range(self._tensors)]
        return HostCache(Memory(pieces), shape, self._spares)

    def adopt(self, tensors: Sequence[Float32Array]) -> HostCache:
        """Returns a cache without room, in the memory of these tensors."""
        rows, _, columns, _ = tensors[0].shape
        memory = Memory([tensor.reshape(-1) for tensor in tensors])
        # Nothing fits in it but a cache of the same size, so that it is not kept.
        return HostCache(memory, self._shape(rows, columns), spares=[])

    def select(self, cache: HostCache, rows: Sequence[int], first_column: int) -> HostCache:
        columns = cache.shape[2] - first_column
        if first_column or not moves_in_place(rows):
            target = self.reserve(len(rows), columns)
            for new, old in zip(target.tensors, cache.tensors, strict=True):
                for place, row in enumerate(rows):
                    new[place] = old[row, :, first_column:]
            cache.give_back()
            return target
        moves = [(place, row) for place, row in enumerate(rows) if place != row]
        if moves:
            for tensor in cache.tensors:
                for place, row in moves:
                    tensor[place] = tensor[row]
        return cache.reshaped(self._shape(len(rows), columns))

    def concatenate(self, first: HostCache, second: HostCache) -> HostCache:
        """Returns the rows of both caches; see `StepSession.concatenate`.

        The first cache is moved only if it is the shorter one, or has no room.
        """
        rows, columns = first.shape[0], max(first.shape[2], second.shape[2])
        shape = self._shape(rows + second.shape[0], columns)
        if first.shape[2] == columns and math.prod(shape) <= first.memory.values:
            target = first.reshaped(shape)
        else:
            target = self.reserve(shape[0], columns)
            for new, old in zip(target.tensors, first.tensors, strict=True):
                _put(old, new[:rows])
            first.give_back()
        for new, old in zip(target.tensors, second.tensors, strict=True):
            _put(old, new[rows:])
        second.give_back()
        return target

    def _shape(self, rows: int, columns: int) -> tuple[int, int, int, int]:
        return (rows, self._heads, columns, self._head_dim)


def _put(rows: Float32Array, target: Float32Array) -> None:
    """Writes rows to a target with at least as many columns, and zeros in front of them."""
    padding = target.shape[2] - rows.shape[2]
    target[:, :, :padding] = 0
    target[:, :, padding:] = rows
