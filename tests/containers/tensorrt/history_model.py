"""A step session whose logits depend on every token before them, and on nothing else.

Its cache holds the tokens themselves, so that a cache with a wrong row, column or order gives
other logits than the tokens that were generated.
"""

import numpy as np

from containers.tensorrt.stepping import HostLogits


class HistoryModel:
    """Logits that are normally distributed, drawn anew for every sequence of tokens and seed."""

    def __init__(self, vocabulary, *, spread=2.0, seed=0):
        self._vocabulary = vocabulary
        self._spread = spread
        self._seed = seed
        self.batch_sizes = []

    def logits(self, token_ids):
        random = np.random.default_rng([self._seed, len(token_ids), *token_ids])
        return (random.standard_normal(self._vocabulary) * self._spread).astype(np.float32)

    def step(self, inputs, temperatures=(), cache=None):
        input_ids, attention_mask, position_ids = inputs
        history = input_ids.astype(np.float32)
        if cache is not None:
            assert input_ids.shape == (len(cache), 1)
            history = np.concatenate([cache, history], axis=1)
        self.batch_sizes.append(len(history))
        rows = [
            row[mask.astype(bool)].astype(int).tolist()
            for row, mask in zip(history, attention_mask, strict=True)
        ]
        assert position_ids[:, -1].tolist() == [len(row) - 1 for row in rows]
        return HostLogits(np.stack([self.logits(row) for row in rows])), history

    def select(self, cache, rows, first_column):
        return cache[list(rows), first_column:]

    def concatenate(self, first, second):
        columns = max(first.shape[1], second.shape[1])
        return np.concatenate(
            [np.pad(each, ((0, 0), (columns - each.shape[1], 0))) for each in (first, second)]
        )
