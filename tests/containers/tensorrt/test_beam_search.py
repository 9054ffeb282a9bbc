"""Beam search against an exhaustive search, and against its rules written down without a cache."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from containers.tensorrt.beam_search import Beams
from containers.tensorrt.generation import Prompt, generate
from containers.tensorrt.model_directory import read_config
from containers.tensorrt.runtimes.onnx_runtime import OnnxRuntimeSession
from containers.tensorrt.sampling import Sampling
from containers.tensorrt.stepping import Float32Array
from tests.containers.tensorrt.history_model import HistoryModel

SAMPLE = Path("samples/gpt2-autocomplete/model")
EarlyStopping = bool | Literal["never"]
Tokens = tuple[int, ...]
LogitsOf = Callable[[Sequence[int]], Float32Array]


def log_probabilities(logits: Float32Array) -> list[float]:
    exact = [float(logit) for logit in logits]
    total = math.log(math.fsum(math.exp(logit) for logit in exact))
    return [logit - total for logit in exact]


def exhaustive(
    logits_of: LogitsOf, prompt: Tokens, *, vocabulary: int, end: int, longest: int, penalty: float
) -> list[Tokens]:
    """Every text that can be generated, best first."""
    scored: list[tuple[float, Tokens]] = []
    others = [token for token in range(vocabulary) if token != end]
    for length in range(1, longest + 1):
        for body in itertools.product(others, repeat=length - 1):
            for last in range(vocabulary):
                if length < longest and last != end:
                    continue
                tokens = (*body, last)
                total = sum(
                    log_probabilities(logits_of((*prompt, *tokens[:place])))[token]
                    for place, token in enumerate(tokens)
                )
                scored.append((total / length**penalty, body if last == end else tokens))
    return [tokens for _, tokens in sorted(scored, reverse=True)]


def by_the_rules(
    logits_of: LogitsOf,
    prompt: Tokens,
    *,
    ends: frozenset[int],
    longest: int,
    beams: Beams,
) -> list[Tokens]:
    """The rules of `generate`, on whole texts: nothing is cached, every candidate is sorted."""
    width = beams.num_beams
    running: list[tuple[float, Tokens]] = [(0.0, ())]
    answers: list[tuple[float, Tokens]] = []
    for length in range(1, longest + 1):
        candidates = sorted(
            (
                (score + gain, (*tokens, token))
                for score, tokens in running
                for token, gain in enumerate(log_probabilities(logits_of((*prompt, *tokens))))
            ),
            reverse=True,
        )[: max(2, 1 + len(ends)) * width]
        ended = [text[-1] in ends or length == longest for _, text in candidates]
        answers += [
            (score / length**beams.length_penalty, text)
            for (score, text), is_end in zip(candidates[:width], ended[:width], strict=True)
            if is_end
        ]
        answers = sorted(answers, reverse=True)[:width]
        running = [
            candidate for candidate, is_end in zip(candidates, ended, strict=True) if not is_end
        ][:width]
        if not running:
            break
        if len(answers) == width:
            reach = length
            if beams.early_stopping == "never" and beams.length_penalty > 0:
                reach = longest
            hope = running[0][0] / reach**beams.length_penalty
            if beams.early_stopping is True or hope <= answers[-1][0]:
                break
    texts = [text for _, text in answers[: beams.num_return_sequences]]
    return [text[:-1] if text[-1] in ends else text for text in texts]


@pytest.mark.parametrize("early_stopping", [False, True, "never"])
@pytest.mark.parametrize("penalty", [-1.5, 0.0, 1.0, 3.0])
def test_a_search_wide_enough_for_everything_is_an_exhaustive_one(
    penalty: float, early_stopping: EarlyStopping
) -> None:
    model = HistoryModel(4)
    expected = exhaustive(model.logits, (2, 1), vocabulary=4, end=0, longest=4, penalty=penalty)
    assert len(expected) == 1 + 3 + 9 + 27 * 4
    width = len(expected)
    beams = Beams(width, width, length_penalty=penalty, early_stopping=early_stopping)
    [found] = generate(model, [Prompt((2, 1), 4, beams=beams)], eos_token_ids=frozenset({0}))
    assert found == expected


@pytest.mark.parametrize("early_stopping", [False, True, "never"])
@pytest.mark.parametrize("penalty", [-1.0, 0.0, 1.0, 2.5])
@pytest.mark.parametrize("ends", [frozenset(), frozenset({0}), frozenset({1, 3, 4})])
def test_a_narrow_search_follows_the_rules(
    ends: frozenset[int], penalty: float, early_stopping: EarlyStopping
) -> None:
    for seed, width in itertools.product(range(6), (2, 3, 5)):
        model = HistoryModel(17, spread=1.5, seed=seed)
        beams = Beams(width, width, length_penalty=penalty, early_stopping=early_stopping)
        [found] = generate(model, [Prompt((5, seed), 9, beams=beams)], eos_token_ids=ends)
        assert found == by_the_rules(model.logits, (5, seed), ends=ends, longest=9, beams=beams)


def test_the_settings_that_end_a_search_give_different_answers() -> None:
    """So that the comparisons above tell the settings apart."""
    settings: list[tuple[float, EarlyStopping]] = [
        (0.0, False),
        (1.0, False),
        (1.0, True),
        (1.0, "never"),
    ]
    found = set()
    for penalty, early_stopping in settings:
        beams = Beams(3, 3, length_penalty=penalty, early_stopping=early_stopping)
        prompts = [Prompt((5, seed), 9, beams=beams) for seed in range(30)]
        model = HistoryModel(17, spread=1.5)
        found.add(str(generate(model, prompts, eos_token_ids=frozenset({1, 3, 4}))))
    assert len(found) == len(settings)


def test_searches_share_a_batch_with_greedy_and_sampled_rows() -> None:
    ends = frozenset({0})
    prompts = [
        Prompt((5, 6, 7), 8),
        Prompt((9,), 12, beams=Beams(3, 2)),
        Prompt((4, 4, 4, 4, 4, 4), 3, sampling=Sampling(seed=11)),
        Prompt((1, 2), 10, beams=Beams(4, 4, length_penalty=2.0, early_stopping="never")),
        Prompt((16,), 9, sampling=Sampling(temperature=0.7, top_k=5, seed=12)),
    ]
    model = HistoryModel(17)
    together = generate(model, prompts, eos_token_ids=ends)
    assert together == [generate(model, [prompt], eos_token_ids=ends)[0] for prompt in prompts]
    assert [len(texts) for texts in together] == [1, 2, 1, 4, 1]


def test_a_search_takes_one_row_for_the_prompt_and_then_one_per_beam() -> None:
    model = HistoryModel(17)
    prompt = Prompt((5,), 4, beams=Beams(3))
    generate(model, [prompt], eos_token_ids=frozenset())
    assert model.batch_sizes == [1, 3, 3, 3]
    assert prompt.rows == 3


def test_the_sample_is_searched_with_a_cache_as_without_one() -> None:
    config = read_config(SAMPLE)
    session = OnnxRuntimeSession(SAMPLE, config, intra_op_threads=1)

    def logits_of(token_ids: Sequence[int]) -> Float32Array:
        ids = np.array([token_ids], dtype=np.int64)
        positions = np.arange(len(token_ids))[None]
        logits, _ = session.prefill(ids, np.ones_like(ids), positions)
        [row] = logits.of_rows(0, 1)
        return row

    prompt = Prompt((1163, 322, 19, 782), 10, beams=Beams(4, 3))
    neighbour = replace(prompt, token_ids=(300, 263))
    found = generate(session, [prompt, neighbour], eos_token_ids=config.eos_token_ids)
    for searched, texts in zip((prompt, neighbour), found, strict=True):
        assert searched.beams is not None
        assert texts == by_the_rules(
            logits_of,
            searched.token_ids,
            ends=config.eos_token_ids,
            longest=10,
            beams=searched.beams,
        )
