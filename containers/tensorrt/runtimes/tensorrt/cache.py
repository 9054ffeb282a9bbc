"""The layout of a batch's keys and values on the GPU, and how its rows move.

An arena holds one cache. It has a plane for each key and value tensor. A plane has a line for each
head of each row, and a line has a column for each token: [tensors, rows, heads, columns, head_dim].
There are gaps only at a plane's end, since TensorRT takes tensors of [rows, heads, columns,
head_dim] without any. A plane has room for the most rows whatever their number, so its size depends
on the columns alone. Rows at the end can therefore be dropped in place, and others put below them.
All planes are alike, so one copy moves rows in all tensors.

A step reads one arena and writes another, and prompts about to join have the third. The memory is
allocated once, and nothing is allocated between steps.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from containers.tensorrt.engine_metadata import EngineMetadata
from containers.tensorrt.runtimes.tensorrt.device_memory import (
    ALIGNMENT_BYTES,
    Box,
    Stream,
    allocate,
)

# Two caches are in use at most, and a third arena is written next.
ARENAS: Final = 3


@dataclass(frozen=True)
class CacheLayout:
    tensors: int  # of keys and of values, two for each layer
    heads: int
    column_bytes: int  # of one token in one head
    max_rows: int
    max_columns: int

    @classmethod
    def of(cls, metadata: EngineMetadata, max_columns: int) -> CacheLayout:
        return cls(
            tensors=2 * metadata.layers,
            heads=metadata.heads,
            column_bytes=metadata.head_dim * metadata.value_bytes,
            max_rows=metadata.max_batch_size,
            max_columns=max_columns,
        )

    def line_bytes(self, columns: int) -> int:
        return columns * self.column_bytes

    def plane_lines(self, columns: int) -> int:
        """Returns the number of lines from one tensor to the next, so that the next is aligned."""
        unit = ALIGNMENT_BYTES // math.gcd(self.line_bytes(columns), ALIGNMENT_BYTES)
        return -(-self.max_rows * self.heads // unit) * unit

    def plane_bytes(self, columns: int) -> int:
        return self.plane_lines(columns) * self.line_bytes(columns)

    @property
    def arena_bytes(self) -> int:
        """Returns the largest need of any number of columns.

        Fewer columns can need more bytes, because shorter lines can need more of them to be
        aligned.
        """
        return self.tensors * max(
            self.plane_bytes(columns) for columns in range(1, self.max_columns + 1)
        )

    @property
    def nothing_bytes(self) -> int:
        return self.tensors * ALIGNMENT_BYTES

    def allocate_nothing(self) -> list[int]:
        """Returns addresses for inputs without columns: even these need one, and each its own."""
        first = allocate(self.nothing_bytes)
        return [first + tensor * ALIGNMENT_BYTES for tensor in range(self.tensors)]


class Arena:
    def __init__(self, address: int) -> None:
        self.address: Final = address
        # A weak reference, so that dropped caches free their arena.
        self.holds: weakref.ref[DeviceCache] | None = None

    @property
    def is_free(self) -> bool:
        return self.holds is None or self.holds() is None


class DeviceCache:
    __slots__ = ("__weakref__", "arena", "columns", "rows")

    def __init__(self, arena: Arena, rows: int, columns: int) -> None:
        self.arena: Final = arena
        self.rows: Final = rows
        self.columns: Final = columns


class CacheMemory:
    """The arenas of a session: one more than caches are in use at a time."""

    def __init__(self, layout: CacheLayout, stream: Stream, arenas: int = ARENAS) -> None:
        self.layout: Final = layout
        self._stream = stream
        # Ordered by when they were last issued, the oldest first.
        self._arenas = [Arena(allocate(layout.arena_bytes)) for _ in range(arenas)]

    def addresses(self, arena: Arena, columns: int) -> list[int]:
        plane_bytes = self.layout.plane_bytes(columns)
        return [arena.address + tensor * plane_bytes for tensor in range(self.layout.tensors)]

    def claim(self, *in_use: Arena) -> Arena:
        """Returns an arena to write to, other than the given ones.

        One arena is always left over. If all hold live caches, something keeps a cache that will
        not be used again, such as the traceback of an error. The oldest arena is then
        returned. If its cache is used after all, `take` refuses it.
        """
        others = [arena for arena in self._arenas if arena not in in_use]
        return next((arena for arena in others if arena.is_free), others[0])

    def issue(self, arena: Arena, rows: int, columns: int) -> DeviceCache:
        """Returns a new cache that stands for the present content of an arena."""
        cache = DeviceCache(arena, rows, columns)
        arena.holds = weakref.ref(cache)
        self._arenas.remove(arena)
        self._arenas.append(arena)
        return cache

    def take(self, cache: DeviceCache) -> Arena:
        """Takes over a cache, if it was not taken before, and returns its arena."""
        if cache.arena.holds is None or cache.arena.holds() is not cache:
            raise RuntimeError("the cache was used before, and is no more")
        cache.arena.holds = None
        return cache.arena

    def select(self, cache: DeviceCache, rows: Sequence[int], first_column: int) -> DeviceCache:
        """Returns a cache of some rows; rows that stay in place are not copied."""
        source = self.take(cache)
        columns = cache.columns - first_column
        if (
            not 0 < len(rows) <= self.layout.max_rows
            or not 0 <= min(rows) <= max(rows) < cache.rows
            or not 0 < columns <= cache.columns
        ):
            raise ValueError(
                f"rows {list(rows)} from column {first_column} of a cache of {cache.rows} rows and "
                f"{cache.columns} columns"
            )
        if not first_column and all(row == place for place, row in enumerate(rows)):
            return self.issue(source, len(rows), columns)
        target = self.claim(source)
        place = 0
        for first_row, count in _runs(rows):
            self._stream.copy(
                self._box(source, cache.columns, row=first_row, column=first_column),
                self._box(target, columns, row=place),
                bytes_=self.layout.line_bytes(columns),
                lines=count * self.layout.heads,
                planes=self.layout.tensors,
            )
            place += count
        return self.issue(target, len(rows), columns)

    def concatenate(self, first: DeviceCache, second: DeviceCache) -> DeviceCache:
        """Returns the rows of both caches; the first is moved only if it is the shorter."""
        upper, lower = self.take(first), self.take(second)
        rows = first.rows + second.rows
        if rows > self.layout.max_rows:
            raise ValueError(f"{rows} rows of a cache for at most {self.layout.max_rows}")
        columns = max(first.columns, second.columns)
        target = upper
        if first.columns < columns:
            target = self.claim(upper, lower)
            self._put(first, target, columns, row=0)
        self._put(second, target, columns, row=first.rows)
        return self.issue(target, rows, columns)

    def _put(self, cache: DeviceCache, target: Arena, columns: int, *, row: int) -> None:
        """Copies a whole cache into a target with at least as many columns."""
        box = self._box(target, columns, row=row, column=columns - cache.columns)
        lines = cache.rows * self.layout.heads
        if box.byte:
            self._stream.clear(
                target.address + box.line * box.line_bytes,
                pitch_bytes=self.layout.plane_bytes(columns),
                bytes_=lines * box.line_bytes,
                lines=self.layout.tensors,
            )
        self._stream.copy(
            self._box(cache.arena, cache.columns),
            box,
            bytes_=self.layout.line_bytes(cache.columns),
            lines=lines,
            planes=self.layout.tensors,
        )

    def _box(self, arena: Arena, columns: int, *, row: int = 0, column: int = 0) -> Box:
        return Box(
            address=arena.address,
            line_bytes=self.layout.line_bytes(columns),
            plane_lines=self.layout.plane_lines(columns),
            line=row * self.layout.heads,
            byte=self.layout.line_bytes(column),
        )


def _runs(rows: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yields the first row and the length of each run of consecutive rows."""
    first, count = rows[0], 1
    for row in rows[1:]:
        if row == first + count:
            count += 1
        else:
            yield first, count
            first, count = row, 1
    yield first, count
