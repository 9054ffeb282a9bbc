"""The decode loop: many prompts with settings of their own in one left-padded batch.

Every row has its prompt, its length limit and its way of choosing tokens. A row that ends leaves
the batch: its part of the key/value cache is cut out, and so are leading columns that are padding
for every row that stays. The cache's length thus never exceeds the longest live row's prompt and
new tokens, which the caller holds within the model's positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

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
class Sampling:
    """How a token is drawn from the model's distribution; filters apply in this order.

    Attributes:
        temperature: divides the logits; above 0.
        top_k: keeps the k likeliest tokens; None keeps all.
        top_p: keeps the fewest likeliest tokens whose probabilities reach p; 1 keeps all.
        seed: starting point of the row's own generator; None takes one from the system.
        stream: tells apart the inputs of one request that share a seed.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    seed: int | None = None
    stream: int = 0

    def generator(self) -> np.random.Generator:
        """Returns a new generator, the same one for the same seed and stream."""
        entropy = None if self.seed is None else (self.seed, self.stream)
        return np.random.default_rng(np.random.SeedSequence(entropy))


@dataclass(frozen=True)
class Prompt:
    """One row.

    Attributes:
        token_ids: at least one.
        max_new_tokens: at least one.
        sampling: None takes the likeliest token each time.
    """

    token_ids: tuple[int, ...]
    max_new_tokens: int
    sampling: Sampling | None = None


@dataclass(eq=False)
class _Row:
    index: int
    prompt: Prompt
    random: np.random.Generator | None
    new_token_ids: list[int]


def generate(
    session: StepSession, prompts: Sequence[Prompt], *, eos_token_ids: frozenset[int]
) -> list[tuple[int, ...]]:
    """Generates for all prompts together.

    A row's tokens do not depend on its neighbours, up to the runtime's rounding.

    Args:
        session: runs the steps.
        prompts: the rows, at least one.
        eos_token_ids: tokens that end a row; they are not returned.

    Returns:
        The new tokens of each prompt, in the order of `prompts`.
    """
    results: list[tuple[int, ...]] = [()] * len(prompts)
    rows = [
        _Row(index, prompt, prompt.sampling.generator() if prompt.sampling else None, [])
        for index, prompt in enumerate(prompts)
    ]
    input_ids, attention_mask = left_pad([prompt.token_ids for prompt in prompts])
    cache = session.empty_cache(len(rows))
    while True:
        positions = np.maximum(attention_mask.cumsum(axis=1) - 1, 0)
        logits, cache = session.step(
            input_ids, attention_mask, positions[:, -input_ids.shape[1] :], cache
        )
        tokens = _choose_tokens(logits, rows)
        staying: list[int] = []
        for place, (row, token) in enumerate(zip(rows, tokens, strict=True)):
            is_end = token in eos_token_ids
            if not is_end:
                row.new_token_ids.append(token)
            if is_end or len(row.new_token_ids) == row.prompt.max_new_tokens:
                results[row.index] = tuple(row.new_token_ids)
            else:
                staying.append(place)
        if not staying:
            return results
        if len(staying) < len(rows):
            rows = [rows[place] for place in staying]
            tokens = [tokens[place] for place in staying]
            attention_mask, cache = _compact(attention_mask, cache, staying)
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


def choose_token(logits: Float32Array, sampling: Sampling, random: np.random.Generator) -> int:
    """Draws one token from the logits [vocabulary] of one row."""
    scores = logits.astype(np.float64) / sampling.temperature
    if sampling.top_k is not None and sampling.top_k < scores.size:
        kth_largest = np.partition(scores, -sampling.top_k)[-sampling.top_k]
        scores[scores < kth_largest] = -np.inf
    # Most likely first; stable, so that equal scores always stand in the same order.
    order = np.argsort(-scores, kind="stable")
    weights = np.exp(scores[order] - scores[order[0]])
    cumulative = np.cumsum(weights)
    if sampling.top_p < 1.0:
        kept = int(np.searchsorted(cumulative, sampling.top_p * cumulative[-1])) + 1
        cumulative = cumulative[:kept]
    # "right" steps over tokens of weight 0; the product can round up to the total itself.
    drawn = int(np.searchsorted(cumulative, random.random() * cumulative[-1], side="right"))
    return int(order[min(drawn, cumulative.size - 1)])


def _choose_tokens(logits: Float32Array, rows: Sequence[_Row]) -> list[int]:
    tokens: list[int] = logits.argmax(axis=-1).tolist()
    for place, row in enumerate(rows):
        if row.prompt.sampling is not None and row.random is not None:
            tokens[place] = choose_token(logits[place], row.prompt.sampling, row.random)
    return tokens


def _compact(
    attention_mask: Int64Array, cache: Cache, staying: Sequence[int]
) -> tuple[Int64Array, Cache]:
    """Keeps the rows `staying`, without the leading columns that all of them mask."""
    mask = attention_mask[staying]
    first_column = int(mask.any(axis=0).argmax())
    return mask[:, first_column:], [tensor[staying, :, first_column:, :] for tensor in cache]
