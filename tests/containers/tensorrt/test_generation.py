"""The decode loop on the committed sample: rows share a batch and do not notice each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from containers.tensorrt.generation import (
    Cache,
    Float32Array,
    Int64Array,
    Prompt,
    StepSession,
    generate,
    left_pad,
)
from containers.tensorrt.model_directory import read_config
from containers.tensorrt.runtimes.onnx_runtime import OnnxRuntimeSession

SAMPLE = Path("samples/gpt2-autocomplete/model")
NO_END: frozenset[int] = frozenset()

# Prompts of different lengths with different limits: padding, early ends and compaction all occur.
PROMPTS = (
    Prompt((1163, 322, 19, 782), max_new_tokens=12),
    Prompt((5,), max_new_tokens=1),
    Prompt((434, 300, 263, 337, 322, 19, 782), max_new_tokens=7),
    Prompt((300, 263), max_new_tokens=20),
)


@pytest.fixture(scope="module")
def session() -> OnnxRuntimeSession:
    return OnnxRuntimeSession(SAMPLE, read_config(SAMPLE), intra_op_threads=1)


def single(
    session: StepSession, prompts: Sequence[Prompt], *, eos_token_ids: frozenset[int] = NO_END
) -> list[tuple[int, ...]]:
    """The one answer to each prompt."""
    answers = []
    for sequences in generate(session, prompts, eos_token_ids=eos_token_ids):
        [tokens] = sequences
        answers.append(tokens)
    return answers


def one(session: StepSession, prompt: Prompt) -> tuple[int, ...]:
    return single(session, [prompt])[0]


def test_a_batch_gives_what_each_prompt_gives_alone(session: OnnxRuntimeSession) -> None:
    together = single(session, PROMPTS)
    assert together == [one(session, prompt) for prompt in PROMPTS]
    assert [len(tokens) for tokens in together] == [12, 1, 7, 20]


def test_the_cache_gives_what_recomputing_everything_gives(session: OnnxRuntimeSession) -> None:
    prompt = PROMPTS[0]
    tokens = list(prompt.token_ids)
    for _ in range(prompt.max_new_tokens):
        ids = np.array([tokens], dtype=np.int64)
        logits, _ = session.step(
            ids, np.ones_like(ids), np.arange(len(tokens))[None], session.empty_cache(1)
        )
        tokens.append(int(logits[0].argmax()))
    assert tuple(tokens[len(prompt.token_ids) :]) == one(session, prompt)


def test_an_end_of_text_token_ends_its_row_only(session: OnnxRuntimeSession) -> None:
    free = single(session, PROMPTS)
    end = free[0][3]
    ended = single(session, PROMPTS, eos_token_ids=frozenset({end}))
    expected = [row[: row.index(end)] if end in row else row for row in free]
    assert ended == expected
    assert len(ended[0]) == 3


def test_a_row_ends_where_its_owner_says_so(session: OnnxRuntimeSession) -> None:
    free = single(session, PROMPTS)
    seen: list[int] = []

    def is_complete(token: int) -> bool:
        seen.append(token)
        return len(seen) == 4

    prompts = [replace(PROMPTS[0], is_complete=is_complete), *PROMPTS[1:]]
    assert single(session, prompts) == [free[0][:4], *free[1:]]
    assert tuple(seen) == free[0][:4]


def test_the_cache_never_outgrows_the_longest_live_row(session: OnnxRuntimeSession) -> None:
    """A long prompt that ends early must not push a short one past the model's positions."""

    class Recording:
        def __init__(self) -> None:
            self.lengths: list[int] = []
            self.rows: list[int] = []

        def empty_cache(self, batch_size: int) -> Cache:
            return session.empty_cache(batch_size)

        def step(
            self, input_ids: Int64Array, mask: Int64Array, positions: Int64Array, past: Cache
        ) -> tuple[Float32Array, Cache]:
            self.rows.append(mask.shape[0])
            self.lengths.append(mask.shape[1])
            return session.step(input_ids, mask, positions, past)

    recording = Recording()
    prompts = [Prompt(tuple(range(1, 121)), max_new_tokens=3), Prompt((5, 6), max_new_tokens=100)]
    generate(recording, prompts, eos_token_ids=NO_END)
    assert recording.rows == [2] * 3 + [1] * 97
    # Three steps at the long prompt's length, then the short one alone, without padding.
    assert recording.lengths == [120, 121, 122, *range(5, 102)]


def test_padding_is_on_the_left() -> None:
    ids, mask = left_pad([(1, 2, 3), (4,)])
    assert ids[:, -1].tolist() == [3, 4]
    assert mask.tolist() == [[1, 1, 1], [0, 0, 1]]
