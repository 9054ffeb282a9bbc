"""Sampling: what may be drawn, how often, and that a seed decides it whatever else is computed."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from containers.tensorrt.generation import Prompt, generate
from containers.tensorrt.sampling import Sampling, choose_candidate, choose_token
from containers.tensorrt.stepping import Candidates
from tests.containers.tensorrt.history_model import HistoryModel
from tests.containers.tensorrt.sample_model import NO_END, PROMPTS

PROMPT, *GREEDY = PROMPTS


def choose_by_sorting(logits, sampling, random):
    """Returns the token that a sort of the whole vocabulary leads to."""
    scores = logits.astype(np.float64) / sampling.temperature
    if sampling.top_k is not None and sampling.top_k < scores.size:
        scores[scores < np.sort(scores)[-sampling.top_k]] = -np.inf
    order = np.argsort(-scores, kind="stable")
    cumulative = np.cumsum(np.exp(scores[order] - scores[order[0]]))
    if sampling.top_p < 1.0:
        kept = np.searchsorted(cumulative, sampling.top_p * cumulative[-1]) + 1
        cumulative = cumulative[:kept]
    drawn = np.searchsorted(cumulative, random.random() * cumulative[-1], side="right")
    return int(order[min(drawn, cumulative.size - 1)])


@pytest.mark.parametrize("vocabulary", [1, 63, 64, 65, 1_000, 20_000])
@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(),
        Sampling(temperature=0.3),
        Sampling(temperature=3.0),
        Sampling(top_k=50),
        Sampling(top_k=2_000),
        Sampling(top_p=0.9),
        Sampling(temperature=2.0, top_p=0.999),
        Sampling(top_k=40, top_p=0.7),
        # The narrowest, which are greedy.
        Sampling(top_k=1),
        Sampling(top_p=1e-9),
        Sampling(temperature=0.001),
    ],
    ids=str,
)
def test_a_draw_is_the_same_as_after_a_sort_of_the_vocabulary(sampling, vocabulary):
    # Coarse logits have equal scores at every limit. Fine ones have almost none.
    shapes = [(1.0, 2), (4.0, 1), (4.0, 6)]
    for seed in range(9):
        spread, digits = shapes[seed % len(shapes)]
        values = spread * np.random.default_rng(seed).standard_normal(vocabulary) - 30
        logits = values.round(digits).astype(np.float32)
        fast, slow = (np.random.default_rng(seed) for _ in range(2))
        drawn = [choose_token(logits, sampling, fast.random()) for _ in range(5)]
        assert drawn == [choose_by_sorting(logits, sampling, slow) for _ in range(5)]


def candidates_of(logits, count, temperature):
    """The candidates of a row, with the sum in float32, as an engine computes it."""
    order = np.argsort(-logits, kind="stable")[:count]
    depths = (logits - logits.max()) / np.float32(temperature)
    return Candidates(order, logits[order], float(np.exp(depths).sum()), count >= logits.size)


@pytest.mark.parametrize("vocabulary", [1, 64, 1_000, 20_000])
@pytest.mark.parametrize(
    ("sampling", "decided"),
    [
        (Sampling(), 0.5),
        (Sampling(temperature=0.3), 0.9),
        (Sampling(top_k=50), 1.0),
        (Sampling(top_k=2_000), 0.0),
        (Sampling(top_p=0.5), 0.3),
        (Sampling(temperature=0.5, top_p=0.9), 0.9),
        (Sampling(top_k=40, top_p=0.7), 1.0),
    ],
    ids=str,
)
def test_candidates_give_the_token_of_all_logits_or_none(sampling, decided, vocabulary):
    known = 0
    random = np.random.default_rng(vocabulary)
    for digits in (1, 6):
        for _ in range(50):
            logits = (4 * random.standard_normal(vocabulary) - 30).round(digits).astype(np.float32)
            share = random.random()
            candidates = candidates_of(logits, min(128, vocabulary), sampling.temperature)
            found = choose_candidate(candidates, sampling, share)
            assert found in (None, choose_token(logits, sampling, share))
            known += digits == 6 and found is not None
    assert known / 50 >= (decided if vocabulary > 128 else 1.0)


def test_candidates_do_not_decide_between_tokens_that_may_be_missing():
    logits = np.array([3.0, 2.0, 2.0, 2.0], dtype=np.float32)
    candidates = candidates_of(logits, 3, 1.0)
    assert choose_candidate(candidates, Sampling(top_k=1), 0.9) == 0
    # The third token of 2.0 is as likely as the two that are known.
    assert choose_candidate(candidates, Sampling(top_k=2), 0.9) is None
    assert choose_candidate(candidates, Sampling(), 0.4) == 0
    assert choose_candidate(candidates, Sampling(), 0.5) is None
    assert choose_candidate(candidates, Sampling(top_p=0.4), 0.9) == 0
    assert choose_candidate(candidates, Sampling(top_p=0.5), 0.1) is None


@pytest.mark.parametrize("batch_size", [1, 2, 5, 8])
def test_a_seed_repeats_whatever_the_batch(session, batch_size):
    sampling = Sampling(temperature=0.9, top_k=50, top_p=0.95, seed=7)
    sampled = replace(PROMPT, sampling=sampling)
    [alone] = generate(session, [sampled], eos_token_ids=NO_END)
    neighbours = [
        *GREEDY,
        *(
            Prompt((token, 263), max_new_tokens=5 + token, sampling=Sampling(seed=token))
            for token in range(1, 6)
        ),
    ]
    for place in (0, batch_size - 1):
        batch = neighbours[: batch_size - 1]
        batch.insert(place, sampled)
        assert generate(session, batch, eos_token_ids=NO_END)[place] == alone
    for other in (replace(sampling, seed=8), replace(sampling, stream=(0, 1))):
        drawn = generate(session, [replace(PROMPT, sampling=other)], eos_token_ids=NO_END)
        assert drawn != [alone]


def test_a_seed_gives_these_numbers_with_every_version_of_numpy():
    first = [Sampling(seed=7).generator().random(), Sampling(seed=8).generator().random()]
    assert first == [0.3921071947199256, 0.9231036562768594]
    streams = {
        Sampling(seed=seed, stream=stream).generator().random()
        for seed in (0, 1, 2**32, 2**32 + 1, 2**63 - 1)
        for stream in ((0, 0), (0, 1), (1, 0), (1, 1))
    }
    assert len(streams) == 20


def test_without_a_seed_every_generation_differs():
    prompt = Prompt((1, 2), max_new_tokens=30, sampling=Sampling())
    model = HistoryModel(1000, spread=0.1)
    together = generate(model, [prompt] * 4, eos_token_ids=NO_END)
    assert len({tokens for [tokens] in together}) == 4


def test_threads_that_sample_at_the_same_time_do_not_disturb_each_other():
    # Rankings of one thread share their memory, of a whole vocabulary and of a few tokens.
    random = np.random.default_rng(3)
    rows = [random.standard_normal(size).astype(np.float32) for size in (20_000, 50, 30_000)]

    def drawn(seed):
        sampling = Sampling(seed=seed, top_p=0.9)
        stream = sampling.generator()
        return [choose_token(rows[number % 3], sampling, stream.random()) for number in range(60)]

    alone = [drawn(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(drawn, range(4))) == alone
