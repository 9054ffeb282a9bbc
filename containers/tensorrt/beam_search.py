"""Beam search over one prompt, as `generate` of Hugging Face transformers 5 defines it.

The search keeps the likeliest `num_beams` unfinished texts. Further rules decide the answer:

- A candidate ends with an end token or at the length limit. It becomes an answer only if it is
  among the `num_beams` likeliest candidates of its step. Its score is its log probability divided
  by its length to the power of `length_penalty`; the end token counts.
- The best `num_beams` answers are kept. The search ends at the length limit. With that many answers
  it ends at once if `early_stopping` is true. Otherwise it ends when the likeliest unfinished text
  can no longer reach the worst answer.
- "Can reach" is an estimate: the text's score at its present length. With "never" and a positive
  penalty it is the score at the length limit, which is never too low.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from containers.tensorrt.stepping import Logits

TokenIds = tuple[int, ...]


@dataclass(frozen=True)
class Beams:
    """The settings of a beam search; see the module."""

    num_beams: int  # texts followed at a time; from two to the size of the vocabulary
    num_return_sequences: int = 1  # answers, best first; at most `num_beams`
    length_penalty: float = 1.0  # above 0 favours long texts, below 0 short texts
    early_stopping: bool | Literal["never"] = False


@dataclass(frozen=True)
class _Beam:
    token_ids: TokenIds
    log_probability: float


@dataclass(frozen=True)
class _Answer:
    token_ids: TokenIds
    score: float


class BeamSearch:
    """The search's state between steps; rows of the batch are its unfinished texts, in order.

    Tokens that end an answer count in its score and are not returned.
    """

    temperature: Final = 1.0
    finish_reason: Final = None

    def __init__(self, beams: Beams, *, max_new_tokens: int, eos_token_ids: frozenset[int]) -> None:
        self._settings = beams
        self.is_finished = False
        self._max_new_tokens = max_new_tokens
        self._eos_token_ids = eos_token_ids
        # Enough candidates to continue with, even if the likeliest tokens of every text are end
        # tokens.
        self._candidates = max(2, 1 + len(eos_token_ids)) * beams.num_beams
        # Before the first token all texts are the same prompt, so one row computes it.
        self._running: list[_Beam] = [_Beam((), 0.0)]
        self._answers: list[_Answer] = []
        self._length = 0

    @property
    def rows(self) -> int:
        """Returns the rows of the batch that the next step computes for this search."""
        return len(self._running)

    @property
    def results(self) -> list[TokenIds]:
        """Returns the answers, best first."""
        return [answer.token_ids for answer in self._answers[: self._settings.num_return_sequences]]

    def advance(
        self,
        logits: Logits,
        likeliest: Sequence[int],  # noqa: ARG002  (a search needs more of each row)
        first_row: int,
    ) -> list[tuple[int, int]]:
        self._length += 1
        is_last = self._length == self._max_new_tokens
        running: list[_Beam] = []
        moves: list[tuple[int, int]] = []
        for rank, (row, token, log_probability) in enumerate(
            self._likeliest(logits.of_rows(first_row, first_row + self.rows))
        ):
            token_ids = self._running[row].token_ids
            is_end = token in self._eos_token_ids
            if is_end or is_last:
                if rank < self._settings.num_beams:
                    self._answers.append(
                        _Answer(
                            token_ids if is_end else (*token_ids, token),
                            log_probability / self._length**self._settings.length_penalty,
                        )
                    )
            elif len(running) < self._settings.num_beams:
                running.append(_Beam((*token_ids, token), log_probability))
                moves.append((row, token))
        # A stable sort: of equal scores the earlier answer stays.
        self._answers.sort(key=lambda answer: -answer.score)
        del self._answers[self._settings.num_beams :]
        self.is_finished = is_last or self._is_decided(running)
        if self.is_finished:
            return []
        self._running = running
        return moves

    def _likeliest(self, logits: npt.NDArray[np.float32]) -> Sequence[tuple[int, int, float]]:
        """Returns the likeliest continuations: row, token and log probability, best first."""
        scores = logits.astype(np.float64)
        scores -= scores.max(axis=-1, keepdims=True)
        scores -= np.log(np.exp(scores).sum(axis=-1, keepdims=True))
        scores += np.array([[beam.log_probability] for beam in self._running])
        flat = scores.ravel()
        count = min(self._candidates, flat.size)
        chosen = np.argpartition(flat, flat.size - count)[flat.size - count :]
        chosen = chosen[np.lexsort((chosen, -flat[chosen]))]
        rows, tokens = np.divmod(chosen, scores.shape[1])
        return list(zip(rows.tolist(), tokens.tolist(), flat[chosen].tolist(), strict=True))

    def _is_decided(self, running: Sequence[_Beam]) -> bool:
        if not running:
            return True
        if len(self._answers) < self._settings.num_beams:
            return False
        if self._settings.early_stopping is True:
            return True
        penalty = self._settings.length_penalty
        is_patient = self._settings.early_stopping == "never" and penalty > 0.0
        length = self._max_new_tokens if is_patient else self._length
        best_possible = running[0].log_probability / math.pow(length, penalty)
        return best_possible <= self._answers[-1].score
