"""A step session whose logits depend on every token before them, and on nothing else.

Its cache holds the tokens themselves, so that a cache with a wrong row, column or order gives
other logits than the tokens that were generated.
"""

from collections.abc import Sequence

import numpy as np

from containers.tensorrt.stepping import Float32Array, HostLogits, Int64Array


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

    def prefill(
        self,
        input_ids: Int64Array,
        attention_mask: Int64Array,
        position_ids: Int64Array,
        temperatures: Sequence[float] = (),
    ) -> tuple[HostLogits, Float32Array]:
        return self._compute(input_ids.astype(np.float32), attention_mask, position_ids)

    def step(
        self,
        input_ids: Int64Array,
        attention_mask: Int64Array,
        position_ids: Int64Array,
        cache: Float32Array,
        temperatures: Sequence[float] = (),
    ) -> tuple[HostLogits, Float32Array]:
        assert input_ids.shape == (len(cache), 1)
        history = np.concatenate([cache, input_ids.astype(np.float32)], axis=1)
        return self._compute(history, attention_mask, position_ids)

    def select(self, cache: Float32Array, rows: Sequence[int], first_column: int) -> Float32Array:
        return cache[list(rows), first_column:]

    def concatenate(self, first: Float32Array, second: Float32Array) -> Float32Array:
        columns = max(first.shape[1], second.shape[1])
        return np.concatenate(
            [np.pad(each, ((0, 0), (columns - each.shape[1], 0))) for each in (first, second)]
        )

    def _compute(
        self, history: Float32Array, attention_mask: Int64Array, position_ids: Int64Array
    ) -> tuple[HostLogits, Float32Array]:
        self.batch_sizes.append(len(history))
        rows = [
            row[mask.astype(bool)].astype(int).tolist()
            for row, mask in zip(history, attention_mask, strict=True)
        ]
        assert position_ids[:, -1].tolist() == [len(row) - 1 for row in rows]
        return HostLogits(np.stack([self.logits(row) for row in rows])), history
