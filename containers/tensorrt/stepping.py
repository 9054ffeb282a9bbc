"""The interface of a runtime to the decode loop: single steps, and moving rows of a cache."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]
Float32Array = npt.NDArray[np.float32]

CacheT = TypeVar("CacheT")

# Names of a step graph's tensors; `cache_names` returns the other names.
STEP_INPUTS: Final = ("input_ids", "attention_mask", "position_ids")
LOGITS: Final = "logits"

# Tensors of an engine that finds the likeliest tokens itself; see `Candidates`.
TEMPERATURES: Final = "temperatures"
CANDIDATE_TOKENS: Final = "candidate_tokens"
CANDIDATE_LOGITS: Final = "candidate_logits"
TOTAL_WEIGHTS: Final = "total_weights"


def cache_names(prefix: str, layers: int) -> list[str]:
    """Returns the names of a cache's tensors in graph order.

    The prefix is past_key_values or present; of encoder-decoder models cross_key_values as well.
    """
    return [f"{prefix}.{layer}.{part}" for layer in range(layers) for part in ("key", "value")]


def moves_in_place(rows: Sequence[int]) -> bool:
    """Returns whether a cache can be reduced to some rows where it lies; see `StepSession.select`.

    Each row then stays, or comes from beyond the last place of the result.
    """
    return all(row == place or row >= len(rows) for place, row in enumerate(rows))


@dataclass(frozen=True)
class Candidates:
    """The likeliest tokens of a row in descending order; of equal logits the lowest token first."""

    token_ids: Int64Array  # [count]
    logits: Float32Array  # [count]
    total_weight: float  # sum of e^((logit - greatest) / temperature) over the vocabulary
    is_whole: bool  # whether the vocabulary has no other token


class StepInputs(NamedTuple):
    """The tokens of one step, padded on the left.

    Ids and positions are [rows, columns], of whole prompts or of one token. The mask, 0 on padding,
    has the columns of the cache too.
    """

    input_ids: Int64Array
    attention_mask: Int64Array
    position_ids: Int64Array


class Logits(Protocol):
    """The logits of a step, which live until the next, perhaps where the runtime computes."""

    def likeliest(self) -> Sequence[int]:
        """Returns the token of the greatest logit in each row."""

    def of_rows(self, first: int, end: int) -> Float32Array:
        """Returns all logits of neighbouring rows, [rows, vocabulary]."""

    def candidates(self, row: int) -> Candidates | None:
        """Returns the likeliest tokens of a row; None if only all logits are known."""


class HostLogits:
    """Logits in this process's memory, [rows, vocabulary]."""

    def __init__(self, logits: Float32Array) -> None:
        self._logits = logits

    def likeliest(self) -> Sequence[int]:
        tokens: list[int] = self._logits.argmax(axis=-1).tolist()
        return tokens

    def of_rows(self, first: int, end: int) -> Float32Array:
        return self._logits[first:end]

    def candidates(self, row: int) -> None:
        del row


class StepSession(Protocol[CacheT]):
    """A runtime with the step graph loaded.

    A cache holds the keys and values of a batch's rows, each padded on the left to as many columns
    as the longest. It stays where the runtime computes, and only the runtime reads it. Every method
    takes over the caches that it is given: callers may not use them again. At most two caches are
    therefore in use at a time. One holds the rows being decoded, the other the rows about to join
    them.
    """

    def step(
        self, inputs: StepInputs, temperatures: Sequence[float], cache: CacheT | None = None
    ) -> tuple[Logits, CacheT]:
        """Runs whole prompts, or with their cache adds one token to every row.

        Returns the logits of the last column, and the cache with the columns of `inputs`.
        `Candidates` are weighted with the temperatures of the rows.
        """

    def select(self, cache: CacheT, rows: Sequence[int], first_column: int) -> CacheT:
        """Returns a cache of some rows, in their order, without the columns before the first.

        A row may appear several times or never. Rows that `moves_in_place` accepts cost the least.
        """

    def concatenate(self, first: CacheT, second: CacheT) -> CacheT:
        """Returns the rows of both caches, the shorter cache padded on the left with zeros.

        The padding must be zeros, since masked values are still multiplied: 0 times NaN is not 0.
        """
