"""What a runtime does for the decode loop: one step, and moving the rows of a cache about."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]
Float32Array = npt.NDArray[np.float32]

CacheT = TypeVar("CacheT")


class StepSession(Protocol[CacheT]):
    """A runtime with the step graph loaded.

    A cache holds the keys and values of the rows of a batch, each padded on the left to as many
    columns as the longest. It stays where the runtime computes, and only the runtime looks into
    it. Every method takes over the caches that it is given: they are not used again. So at most
    two are in use at a time, that of the rows that are decoded and that of rows about to join
    them.
    """

    def prefill(
        self, input_ids: Int64Array, attention_mask: Int64Array, position_ids: Int64Array
    ) -> tuple[Float32Array, CacheT]:
        """Runs whole prompts, with nothing before them.

        Args:
            input_ids: [rows, columns], padded on the left.
            attention_mask: [rows, columns], 0 on padding.
            position_ids: [rows, columns].

        Returns:
            Logits of the last column, [rows, vocabulary], and the prompts' cache.
        """

    def step(
        self,
        input_ids: Int64Array,
        attention_mask: Int64Array,
        position_ids: Int64Array,
        cache: CacheT,
    ) -> tuple[Float32Array, CacheT]:
        """Adds one token to every row.

        Args:
            input_ids: [rows, 1].
            attention_mask: [rows, columns + 1], 0 on padding.
            position_ids: [rows, 1].
            cache: of that many rows and columns.

        Returns:
            Logits, [rows, vocabulary], and the cache with one column more.
        """

    def select(self, cache: CacheT, rows: Sequence[int], first_column: int) -> CacheT:
        """Returns the cache of these rows, in this order, without the columns before the first.

        A row may be there several times or not at all.
        """

    def concatenate(self, first: CacheT, second: CacheT) -> CacheT:
        """Returns the rows of both, the shorter one padded on the left with zeros.

        Zeros, since what is masked is still multiplied: 0 times what is not a number is not 0.
        """
