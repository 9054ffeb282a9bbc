"""The decode loop: prompts with their own settings share a batch, and join and leave it.

Every prompt has its tokens, its length limit and its way of choosing the next token. Greedy and
sampled prompts are one row each. A beam search is one row per beam, side by side, and begins with
one row.

Prompts join between two steps: they are computed up to their first token by themselves, and their
rows are put below the others. After each step the continuing rows are selected out of the key/value
cache. The last row fills the place of an ended row, so that the rows between them stay where they
are. A row that several beams continue is copied. Leading columns that are padding for every row are
cut off. The cache's length thus never exceeds the longest live row's prompt and new tokens. The
caller keeps that length within the model's positions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from containers.tensorrt.beam_search import Beams, BeamSearch, TokenIds
from containers.tensorrt.sampling import Sampling, choose_candidate, choose_token
from containers.tensorrt.stepping import Int64Array, Logits, StepInputs, StepSession

# Text Generation Inference's names.
FinishReason: TypeAlias = Literal["length", "eos_token", "stop_sequence"]

# Padding is masked, so any valid token id does.
_PAD_TOKEN_ID: Final = 0


@dataclass(frozen=True)
class Prompt:
    """One prompt and how it is continued; greedily without `sampling` and `beams`."""

    token_ids: TokenIds  # at least one
    max_new_tokens: int  # at least one
    sampling: Sampling | None = None
    beams: Beams | None = None  # not with `sampling` or `is_complete`
    is_complete: Callable[[int], bool] | None = None

    @property
    def rows(self) -> int:
        return self.beams.num_beams if self.beams else 1


class SingleRow:
    rows: Final = 1

    def __init__(self, prompt: Prompt, eos_token_ids: frozenset[int]) -> None:
        self._prompt = prompt
        self._eos_token_ids = eos_token_ids
        self._random = prompt.sampling.generator() if prompt.sampling else None
        self._new_token_ids: list[int] = []
        self.temperature: Final = prompt.sampling.temperature if prompt.sampling else 1.0
        self.is_finished = False
        self.finish_reason: FinishReason = "length"

    @property
    def results(self) -> list[TokenIds]:
        return [tuple(self._new_token_ids)]

    def advance(
        self, logits: Logits, likeliest: Sequence[int], first_row: int
    ) -> list[tuple[int, int]]:
        """Takes one step with the logits of the batch, whose `first_row` is the prompt's.

        Returns, for each row of the next step, the row that it continues, counted from the prompt's
        first, and the token that it adds.
        """
        if self._random is None or self._prompt.sampling is None:
            token = likeliest[first_row]
        else:
            token = _sample(logits, first_row, self._prompt.sampling, self._random.random())
        self.is_finished = self._ends_with(token)
        return [] if self.is_finished else [(0, token)]

    def _ends_with(self, token: int) -> bool:
        if token in self._eos_token_ids:
            self.finish_reason = "eos_token"
            return True
        self._new_token_ids.append(token)
        if self._prompt.is_complete is not None and self._prompt.is_complete(token):
            self.finish_reason = "stop_sequence"
            return True
        return len(self._new_token_ids) == self._prompt.max_new_tokens


# A prompt in a `DecodingBatch`, and the tokens generated so far.
Continuation: TypeAlias = SingleRow | BeamSearch


class DecodingBatch:
    """The prompts that are continued together; empty at first.

    A prompt's tokens do not depend on its neighbours, up to the runtime's rounding. A batch has at
    most as many rows as the prompts' `rows` add up to. Tokens that end a row are not returned.
    """

    # Any: only the session knows the type of its cache.
    def __init__(self, session: StepSession[Any], *, eos_token_ids: frozenset[int]) -> None:
        self._session = session
        self._eos_token_ids = eos_token_ids
        self.clear()

    @property
    def rows(self) -> int:
        return len(self._tokens)

    def clear(self) -> None:
        self._live: list[Continuation] = []
        # The token that each row adds in the next step.
        self._tokens: list[int] = []
        self._attention_mask: Int64Array = np.zeros((0, 0), dtype=np.int64)
        self._cache: Any = None

    def join(self, prompts: Sequence[Prompt]) -> list[Continuation]:
        """Adds prompts and computes their first tokens, which may finish a continuation already."""
        joining = [self._begin(prompt) for prompt in prompts]
        input_ids, mask = left_pad([prompt.token_ids for prompt in prompts])
        positions = np.maximum(mask.cumsum(axis=1) - 1, 0)
        inputs = StepInputs(input_ids, mask, positions)
        logits, cache = self._session.step(inputs, _temperatures(joining))
        sources, tokens = _advance(joining, logits)
        if sources:
            mask, cache = self._select(mask, cache, sources)
            if self._live:
                mask = _stack(self._attention_mask, mask)
                cache = self._session.concatenate(self._cache, cache)
            self._attention_mask, self._cache = mask, cache
            self._tokens += tokens
            self._live += [each for each in joining if not each.is_finished]
        return joining

    def step(self) -> list[Continuation]:
        """Adds a token to every prompt, at least one; returns the continuations that finished."""
        # Not `np.pad`, which is slow for small arrays.
        added = np.ones((self.rows, 1), dtype=np.int64)
        mask = np.concatenate((self._attention_mask, added), axis=1)
        positions = mask.sum(axis=1, keepdims=True) - 1
        inputs = StepInputs(np.array(self._tokens, dtype=np.int64)[:, None], mask, positions)
        logits, cache = self._session.step(inputs, _temperatures(self._live), self._cache)
        sources, tokens = _advance(self._live, logits)
        finished = [each for each in self._live if each.is_finished]
        if sources:
            live = [each for each in self._live if not each.is_finished]
            self._keep(live, sources, tokens, mask, cache)
        else:
            self.clear()
        return finished

    def leave(self, leaving: Sequence[Continuation]) -> None:
        """Removes unfinished prompts whose requests have ended; finished prompts left already."""
        staying: list[int] = []
        row = 0
        for each in self._live:
            if each not in leaving:
                staying += range(row, row + each.rows)
            row += each.rows
        if not staying:
            self.clear()
        elif len(staying) < row:
            live = [each for each in self._live if each not in leaving]
            tokens = [self._tokens[source] for source in staying]
            self._keep(live, staying, tokens, self._attention_mask, self._cache)

    def _begin(self, prompt: Prompt) -> Continuation:
        if prompt.beams is None:
            return SingleRow(prompt, self._eos_token_ids)
        return BeamSearch(
            prompt.beams, max_new_tokens=prompt.max_new_tokens, eos_token_ids=self._eos_token_ids
        )

    # Any: only the session knows the type of its cache.
    def _keep(
        self,
        live: list[Continuation],
        sources: Sequence[int],
        tokens: list[int],
        mask: Int64Array,
        cache: Any,
    ) -> None:
        """Keeps the rows that continue.

        `sources` and `tokens` have, for each row of `live`, the row of `mask` and `cache` that it
        continues and the token that the next step adds.
        """
        if len(live) == len(sources):
            # Each prompt has one row, so that their order is free.
            order = _last_rows_fill_gaps(sources)
            live = [live[index] for index in order]
            sources = [sources[index] for index in order]
            tokens = [tokens[index] for index in order]
        self._live, self._tokens = live, tokens
        self._attention_mask, self._cache = self._select(mask, cache, sources)

    # Any: only the session knows the type of its cache.
    def _select(self, mask: Int64Array, cache: Any, sources: Sequence[int]) -> tuple[Any, Any]:
        """Returns mask and cache of these rows, without the columns that all of them mask."""
        if sources == list(range(len(mask))):
            return mask, cache
        selected = mask[sources]
        first_column = int(selected.any(axis=0).argmax())
        return selected[:, first_column:], self._session.select(cache, sources, first_column)


# Any: only the session knows the type of its cache.
def generate(
    session: StepSession[Any], prompts: Sequence[Prompt], *, eos_token_ids: frozenset[int]
) -> list[list[TokenIds]]:
    """Returns the new tokens of each prompt: one sequence, or those of its beams, best first."""
    batch = DecodingBatch(session, eos_token_ids=eos_token_ids)
    continuations = batch.join(prompts)
    while batch.rows:
        batch.step()
    return [each.results for each in continuations]


def left_pad(sequences: Sequence[Sequence[int]]) -> tuple[Int64Array, Int64Array]:
    """Returns token ids and attention mask, [batch, longest], with padding on the left."""
    longest = max(len(sequence) for sequence in sequences)
    token_ids = np.full((len(sequences), longest), _PAD_TOKEN_ID, dtype=np.int64)
    mask = np.zeros_like(token_ids)
    for row, sequence in enumerate(sequences):
        token_ids[row, longest - len(sequence) :] = sequence
        mask[row, longest - len(sequence) :] = 1
    return token_ids, mask


def _sample(logits: Logits, row: int, sampling: Sampling, share: float) -> int:
    """Returns a row's token at a share of its distribution."""
    candidates = logits.candidates(row)
    token = None if candidates is None else choose_candidate(candidates, sampling, share)
    if token is None:
        [whole] = logits.of_rows(row, row + 1)
        token = choose_token(whole, sampling, share)
    return token


def _temperatures(live: Sequence[Continuation]) -> list[float]:
    return [each.temperature for each in live for _ in range(each.rows)]


def _advance(live: Sequence[Continuation], logits: Logits) -> tuple[list[int], list[int]]:
    """Takes one step in every continuation; returns, for each row, its source and its token."""
    likeliest = logits.likeliest()
    sources: list[int] = []
    tokens: list[int] = []
    first_row = 0
    for each in live:
        rows = each.rows
        moves = each.advance(logits, likeliest, first_row)
        sources += [first_row + row for row, _ in moves]
        tokens += [token for _, token in moves]
        first_row += rows
    return sources, tokens


def _last_rows_fill_gaps(sources: Sequence[int]) -> list[int]:
    """Returns the order of different rows (indexes of `sources`) that moves the fewest of them.

    A row whose place is still there keeps it, and the others fill the gaps.
    """
    staying = {source: index for index, source in enumerate(sources) if source < len(sources)}
    moving = iter([index for index, source in enumerate(sources) if source >= len(sources)])
    return [staying[place] if place in staying else next(moving) for place in range(len(sources))]


def _stack(upper: Int64Array, lower: Int64Array) -> Int64Array:
    """Returns both masks, one above the other, the narrower one padded on the left."""
    columns = max(upper.shape[1], lower.shape[1])
    return np.concatenate(
        [np.pad(mask, ((0, 0), (columns - mask.shape[1], 0))) for mask in (upper, lower)]
    )
