"""Samples one token from the model's distribution, with the row's own random stream.

The generator is NumPy's over PCG64, named explicitly instead of "the default", and seeded through
`SeedSequence`. NumPy guarantees the bits of both for good. It may change how `Generator.random`
uses them, with notice, and a test would show that
(https://numpy.org/doc/stable/reference/random/compatibility.html). One number is drawn per token
and nothing else reads the stream, so neighbours in a batch cannot shift it.
"""

import threading
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from containers.tensorrt.stepping import Candidates

# The levels of `_Ranking` end where a weight, e^-40, no longer changes a sum of doubles.
_LEVELS: Final = 4096
_DEEPEST: Final = 40.0
# `_likeliest` lays the vocabulary out in so many rows.
_ROWS: Final = 16


@dataclass(frozen=True)
class Sampling:
    """Settings of sampling; the filters apply in this order, as in Hugging Face's generate.

    The rows of one request share its `seed`, and have different `stream`s: the index of the input
    and of the completion.
    """

    temperature: float = 1.0  # divides the logits; above 0
    top_k: int | None = None  # keeps the k likeliest tokens
    top_p: float = 1.0  # keeps the fewest likeliest tokens with this probability
    seed: int | None = None  # None takes one from the system
    stream: tuple[int, int] = (0, 0)

    def generator(self) -> np.random.Generator:
        return np.random.Generator(
            np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=self.stream))
        )


def choose_token(logits: npt.NDArray[np.float32], sampling: Sampling, share: float) -> int:
    """Returns the token of one row's logits at a share (in [0, 1)) of the distribution."""
    if sampling.top_k is None or sampling.top_k >= logits.size:
        return _Ranking(logits, sampling.temperature).token_at(share, sampling.top_p)
    kept = _likeliest(logits, sampling.top_k)
    ranking = _Ranking(logits[kept], sampling.temperature)
    return int(kept[ranking.token_at(share, sampling.top_p)])


def choose_candidate(candidates: Candidates, sampling: Sampling, share: float) -> int | None:
    """Returns the token that `choose_token` would return; None if it needs the other logits too.

    The candidates are weighted with the temperature of `sampling`.
    """
    logits = candidates.logits
    # Of the tokens that are as likely as the last, others may be missing.
    known = logits.size if candidates.is_whole else int((logits > logits[-1]).sum())
    depths = (logits[0] - logits[:known]) / np.float32(sampling.temperature)
    cumulative = np.cumsum(np.exp(-depths), dtype=np.float64)
    total = candidates.total_weight
    if sampling.top_k is not None and not (candidates.is_whole and sampling.top_k >= logits.size):
        if sampling.top_k > known:
            return None
        # All that are as likely as the last of them, as in `_likeliest`.
        kept = int((logits[:known] >= logits[sampling.top_k - 1]).sum())
        cumulative = cumulative[:kept]
        total = float(cumulative[-1])
    if sampling.top_p < 1.0:
        last = int(np.searchsorted(cumulative, sampling.top_p * total, "left"))
        if last == cumulative.size:
            return None
        total = float(cumulative[last])
    place = int(np.searchsorted(cumulative, min(share * total, np.nextafter(total, 0.0)), "right"))
    return int(candidates.token_ids[place]) if place < cumulative.size else None


class _Memory(threading.local):
    """Arrays for the rankings of one thread: fresh memory costs a page fault for every 4 KiB."""

    def __init__(self) -> None:
        self._reserve(0)

    def arrays(
        self, size: int
    ) -> tuple[
        npt.NDArray[np.float32],
        npt.NDArray[np.float32],
        npt.NDArray[np.float64],
        npt.NDArray[np.intp],
    ]:
        if size > self._levels.size:
            self._reserve(size)
        return self._depths[:size], self._singles[:size], self._doubles[:size], self._levels[:size]

    def _reserve(self, size: int) -> None:
        self._depths = np.empty(size, np.float32)
        self._singles = np.empty(size, np.float32)
        self._doubles = np.empty(size, np.float64)
        self._levels = np.empty(size, np.intp)


_memory = _Memory()


class _Ranking:
    """Tokens in descending order of their probability, without the slow sort of all of them.

    The tokens are counted into narrow levels of their score. Only the tokens of one level are
    sorted: the level that a cumulative weight falls into.

    A thread has one ranking at a time, because rankings of a thread share memory.
    """

    def __init__(self, logits: npt.NDArray[np.float32], temperature: float) -> None:
        self._logits = logits
        depths, weights, self._weights, self._levels = _memory.arrays(logits.size)
        np.subtract(logits.max(), logits, out=depths)
        depths /= np.float32(temperature)
        # The likeliest token's weight is 1.
        np.exp(np.negative(depths, out=weights), out=weights)
        np.copyto(self._weights, weights)
        depths *= np.float32(_LEVELS / _DEEPEST)
        np.minimum(depths, np.float32(_LEVELS - 1), out=depths)
        np.copyto(self._levels, depths, casting="unsafe")
        self._cumulative = np.cumsum(np.bincount(self._levels, self._weights, _LEVELS))

    def token_at(self, share: float, top_p: float) -> int:
        """Returns the token at a share (in [0, 1)) of the weight of those that top_p keeps."""
        total = float(self._cumulative[-1])
        if top_p < 1.0:
            _, total = self._locate(top_p * total, "left")
        # Rounding can make the product equal to the total, which is behind the last token.
        token, _ = self._locate(min(share * total, np.nextafter(total, 0.0)), "right")
        return token

    def _locate(self, weight: float, side: Literal["left", "right"]) -> tuple[int, float]:
        """Returns the token where the cumulative weight is reached, and the weight up to its end.

        A token that ends at `weight` is the one for "left"; for "right" it is the next.
        """
        level = int(np.searchsorted(self._cumulative, weight, side))
        tokens = np.flatnonzero(self._levels == level)
        # Stable, so that equal scores always have the same order.
        tokens = tokens[np.argsort(-self._logits[tokens], kind="stable")]
        before = self._cumulative[level - 1] if level else 0.0
        cumulative = before + np.cumsum(self._weights[tokens])
        # The sums of a level differ by their rounding.
        place = min(int(np.searchsorted(cumulative, weight, side)), tokens.size - 1)
        return int(tokens[place]), float(cumulative[place])


def _likeliest(logits: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.int64]:
    """Returns the ids of the `count` greatest logits, and of those equal to the last of them."""
    tokens: npt.NDArray[np.int64] = np.arange(logits.size)
    columns = logits.size // _ROWS
    if count <= columns:
        # So many columns have a logit of at least this bound, and few other logits reach it.
        maxima = logits[: _ROWS * columns].reshape(_ROWS, columns).max(axis=0)
        tokens = np.flatnonzero(logits >= np.partition(maxima, -count)[-count])
    candidates = logits[tokens]
    kept: npt.NDArray[np.int64] = tokens[candidates >= np.partition(candidates, -count)[-count]]
    return kept
