"""The decode loop of a sequence-to-sequence model: the texts of a batch begin and end together.

The encoder runs once for a batch. Each step adds one token to every row. A row that has ended is
left out of the next step, so that short answers cost nothing while long ones go on.
"""

from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Int64Array: TypeAlias = npt.NDArray[np.int64]
Float32Array: TypeAlias = npt.NDArray[np.float32]
TokenIds: TypeAlias = tuple[int, ...]

StateT = TypeVar("StateT")

# Padding is masked, so any token that the model knows does.
_PADDING: Final = 0


class SequenceSession(Protocol[StateT]):
    """A runtime with the encoder and the decoder step loaded.

    A state holds the keys and values of a batch's rows. Every method takes over the state that it
    is given: callers may not use it again.
    """

    def encode(self, input_ids: Int64Array, attention_mask: Int64Array) -> StateT:
        """Runs the encoder on [rows, columns], padded on the right; the mask is 0 on padding."""

    def step(self, tokens: Int64Array, state: StateT) -> tuple[Float32Array, StateT]:
        """Adds one token to every row; takes tokens of [rows, 1].

        Returns logits, [rows, vocabulary], and the state with one token more.
        """

    def select(self, state: StateT, rows: Sequence[int]) -> StateT:
        """Returns the state of some rows."""


def answers(
    session: SequenceSession[StateT],
    prompts: Sequence[TokenIds],
    *,
    max_new_tokens: int,
    start_token_id: int,
    end_token_ids: frozenset[int],
) -> list[TokenIds]:
    """Returns the greedy answer to each prompt, without the tokens that begin and end it.

    A prompt's answer does not depend on its neighbours, up to the runtime's rounding. There is at
    least one prompt, each of at least one token.
    """
    found: list[list[int]] = [[] for _ in prompts]
    live = list(range(len(prompts)))
    state = session.encode(*_padded(prompts))
    tokens = np.full((len(prompts), 1), start_token_id, dtype=np.int64)
    for count in range(1, max_new_tokens + 1):
        logits, state = session.step(tokens, state)
        chosen = logits.argmax(axis=-1)
        going = [row for row, token in enumerate(chosen) if int(token) not in end_token_ids]
        for row in going:
            found[live[row]].append(int(chosen[row]))
        if not going or count == max_new_tokens:
            break
        if len(going) < len(live):
            state = session.select(state, going)
            live = [live[row] for row in going]
        tokens = chosen[going, None].astype(np.int64)
    return [tuple(each) for each in found]


def _padded(prompts: Sequence[TokenIds]) -> tuple[Int64Array, Int64Array]:
    """Returns tokens and mask, [rows, columns of the longest], padded on the right."""
    columns = max(map(len, prompts))
    tokens = np.full((len(prompts), columns), _PADDING, dtype=np.int64)
    mask = np.zeros_like(tokens)
    for row, prompt in enumerate(prompts):
        tokens[row, : len(prompt)] = prompt
        mask[row, : len(prompt)] = 1
    return tokens, mask
