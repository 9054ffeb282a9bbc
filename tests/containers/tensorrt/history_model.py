"""A step session whose logits depend on every token before them, and on nothing else.

Its cache holds the tokens themselves, so that a cache with a wrong row, column or order gives
other logits than the tokens that were generated.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from containers.tensorrt.generation import Cache, Float32Array, Int64Array


class HistoryModel:
    """Logits that are normally distributed, drawn anew for every sequence of tokens.

    Args:
        vocabulary: number of tokens.
        spread: standard deviation of the logits.
        seed: another number, another model.
    """

    def __init__(self, vocabulary: int, *, spread: float = 2.0, seed: int = 0) -> None:
        self._vocabulary = vocabulary
        self._spread = spread
        self._seed = seed
        self.batch_sizes: list[int] = []

    def logits(self, token_ids: Sequence[int]) -> Float32Array:
        random = np.random.default_rng([self._seed, len(token_ids), *token_ids])
        return (random.standard_normal(self._vocabulary) * self._spread).astype(np.float32)

    def empty_cache(self, batch_size: int) -> Cache:
        return [np.zeros((batch_size, 1, 0, 1), dtype=np.float32)]

    def step(
        self,
        input_ids: Int64Array,
        attention_mask: Int64Array,
        position_ids: Int64Array,
        past: Cache,
    ) -> tuple[Float32Array, Cache]:
        self.batch_sizes.append(len(input_ids))
        added = input_ids.astype(np.float32)[:, None, :, None]
        [known] = past
        history = np.concatenate([known, added], axis=2)
        rows = [
            row[mask.astype(bool)].astype(int).tolist()
            for row, mask in zip(history[:, 0, :, 0], attention_mask, strict=True)
        ]
        assert position_ids[:, -1].tolist() == [len(row) - 1 for row in rows]
        return np.stack([self.logits(row) for row in rows]), [history]
