"""The decode loop: many prompts with settings of their own in one left-padded batch.

Every prompt has its tokens, its length limit and its way of choosing the next token. Greedy and
sampled prompts are one row each; a beam search is one row per beam, side by side, and begins with
one. After each step the rows that go on are gathered out of the key/value cache: a row that ended
is left out, one that several beams continue is copied, and leading columns that are padding for
every row are cut off. The cache's length thus never exceeds the longest live row's prompt and new
tokens, which the caller holds within the model's positions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from containers.tensorrt.beam_search import Beams, BeamSearch, TokenIds
from containers.tensorrt.sampling import Sampling, choose_token

Int64Array = npt.NDArray[np.int64]
Float32Array = npt.NDArray[np.float32]
# Keys and values, layer by layer: key 0, value 0, key 1, ...; each [batch, heads, past, head_dim].
Cache = Sequence[Float32Array]

# Padding is masked, so any valid token does.
_PAD_TOKEN_ID: Final = 0


class StepSession(Protocol):
    """A runtime with the step graph loaded."""

    def empty_cache(self, batch_size: int) -> Cache:
        """Returns a cache of past length 0."""

    def step(
        self,
        input_ids: Int64Array,
        attention_mask: Int64Array,
        position_ids: Int64Array,
        past: Cache,
    ) -> tuple[Float32Array, Cache]:
        """Runs the graph once.

        Args:
            input_ids: [batch, sequence].
            attention_mask: [batch, past + sequence], 0 on padding.
            position_ids: [batch, sequence].
            past: the cache of the steps before.

        Returns:
            Logits of the last position, [batch, vocabulary], and the grown cache.
        """


@dataclass(frozen=True)
class Prompt:
    """One prompt and how it is continued; greedily unless `sampling` or `beams` is there.

    Attributes:
        token_ids: at least one.
        max_new_tokens: at least one.
        sampling: how tokens are drawn.
        beams: how texts are searched; not together with `sampling` or `is_complete`.
        is_complete: called with every new token; true ends the row after it.
    """

    token_ids: TokenIds
    max_new_tokens: int
    sampling: Sampling | None = None
    beams: Beams | None = None
    is_complete: Callable[[int], bool] | None = None

    @property
    def rows(self) -> int:
        """Most rows of a batch that this prompt takes at a time."""
        return self.beams.num_beams if self.beams else 1


class _SingleRow:
    """A prompt that is continued greedily or by sampling."""

    rows: Final = 1

    def __init__(self, prompt: Prompt, eos_token_ids: frozenset[int]) -> None:
        self._prompt = prompt
        self._eos_token_ids = eos_token_ids
        self._random = prompt.sampling.generator() if prompt.sampling else None
        self._new_token_ids: list[int] = []

    @property
    def results(self) -> list[TokenIds]:
        return [tuple(self._new_token_ids)]

    def choose(self, logits: Float32Array, likeliest: int) -> int | None:
        """Returns the row's next token, or None when the row has ended."""
        token = likeliest
        prompt = self._prompt
        if self._random is not None and prompt.sampling is not None:
            token = choose_token(logits, prompt.sampling, self._random)
        if token in self._eos_token_ids:
            return None
        self._new_token_ids.append(token)
        if prompt.is_complete is not None and prompt.is_complete(token):
            return None
        return None if len(self._new_token_ids) == prompt.max_new_tokens else token


def generate(
    session: StepSession, prompts: Sequence[Prompt], *, eos_token_ids: frozenset[int]
) -> list[list[TokenIds]]:
    """Generates for all prompts together.

    A prompt's tokens do not depend on its neighbours, up to the runtime's rounding.

    Args:
        session: runs the steps, on at most the sum of the prompts' `rows` rows at a time.
        prompts: at least one.
        eos_token_ids: tokens that end a row; they are not returned.

    Returns:
        The new tokens of each prompt, in the order of `prompts`: one sequence, or as many as its
        beam search returns, best first.
    """
    searches = [_search(prompt, eos_token_ids) for prompt in prompts]
    live = searches
    input_ids, attention_mask = left_pad([prompt.token_ids for prompt in prompts])
    cache = session.empty_cache(len(prompts))
    while True:
        positions = np.maximum(attention_mask.cumsum(axis=1) - 1, 0)
        logits, cache = session.step(
            input_ids, attention_mask, positions[:, -input_ids.shape[1] :], cache
        )
        live, sources, tokens = _advance(live, logits)
        if not live:
            return [search.results for search in searches]
        if sources != list(range(len(logits))):
            attention_mask, cache = _gather(attention_mask, cache, sources)
        input_ids = np.array(tokens, dtype=np.int64)[:, None]
        attention_mask = np.pad(attention_mask, ((0, 0), (0, 1)), constant_values=1)


def left_pad(sequences: Sequence[Sequence[int]]) -> tuple[Int64Array, Int64Array]:
    """Returns token ids and attention mask, [batch, longest], with padding on the left."""
    longest = max(len(sequence) for sequence in sequences)
    token_ids = np.full((len(sequences), longest), _PAD_TOKEN_ID, dtype=np.int64)
    mask = np.zeros_like(token_ids)
    for row, sequence in enumerate(sequences):
        token_ids[row, longest - len(sequence) :] = sequence
        mask[row, longest - len(sequence) :] = 1
    return token_ids, mask


def _search(prompt: Prompt, eos_token_ids: frozenset[int]) -> _SingleRow | BeamSearch:
    if prompt.beams is None:
        return _SingleRow(prompt, eos_token_ids)
    return BeamSearch(
        prompt.beams, max_new_tokens=prompt.max_new_tokens, eos_token_ids=eos_token_ids
    )


def _advance(
    live: Sequence[_SingleRow | BeamSearch], logits: Float32Array
) -> tuple[list[_SingleRow | BeamSearch], list[int], list[int]]:
    """Takes one step in every search.

    Returns:
        The searches that go on; for each row of the next step the row that it continues; and the
        token that it adds.
    """
    likeliest: list[int] = logits.argmax(axis=-1).tolist()
    staying: list[_SingleRow | BeamSearch] = []
    sources: list[int] = []
    tokens: list[int] = []
    first_row = 0
    for search in live:
        rows = search.rows
        if isinstance(search, BeamSearch):
            moves = search.advance(logits[first_row : first_row + rows])
            sources += [first_row + row for row, _ in moves]
            tokens += [token for _, token in moves]
            if moves:
                staying.append(search)
        elif (token := search.choose(logits[first_row], likeliest[first_row])) is not None:
            sources.append(first_row)
            tokens.append(token)
            staying.append(search)
        first_row += rows
    return staying, sources, tokens


def _gather(
    attention_mask: Int64Array, cache: Cache, sources: Sequence[int]
) -> tuple[Int64Array, Cache]:
    """Returns the rows `sources`, without the leading columns that all of them mask."""
    mask = attention_mask[sources]
    first_column = int(mask.any(axis=0).argmax())
    return mask[:, first_column:], [tensor[sources, :, first_column:, :] for tensor in cache]
