"""Beam search against its rules, written down without a cache."""

import itertools
import math

import pytest

from containers.tensorrt.beam_search import Beams
from containers.tensorrt.generation import Prompt, generate
from tests.containers.tensorrt.history_model import HistoryModel


def log_probabilities(logits):
    exact = [float(logit) for logit in logits]
    total = math.log(math.fsum(math.exp(logit) for logit in exact))
    return [logit - total for logit in exact]


def by_the_rules(logits_of, prompt, *, ends, longest, beams):
    """The rules of `generate`, on whole texts: nothing is cached, every candidate is sorted."""
    width = beams.num_beams
    running = [(0.0, ())]
    answers = []
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
@pytest.mark.parametrize("penalty", [-1.0, 0.0, 1.0, 2.5])
@pytest.mark.parametrize("ends", [frozenset(), frozenset({0}), frozenset({1, 3, 4})])
def test_a_narrow_search_follows_the_rules(ends, penalty, early_stopping):
    for seed, width in itertools.product(range(6), (2, 3, 5)):
        model = HistoryModel(17, spread=1.5, seed=seed)
        beams = Beams(width, width, length_penalty=penalty, early_stopping=early_stopping)
        [found] = generate(model, [Prompt((5, seed), 9, beams=beams)], eos_token_ids=ends)
        assert found == by_the_rules(model.logits, (5, seed), ends=ends, longest=9, beams=beams)


def test_a_search_takes_one_row_for_the_prompt_and_then_one_per_beam():
    model = HistoryModel(17)
    prompt = Prompt((5,), 4, beams=Beams(3))
    generate(model, [prompt], eos_token_ids=frozenset())
    assert model.batch_sizes == [1, 3, 3, 3]
    assert prompt.rows == 3
