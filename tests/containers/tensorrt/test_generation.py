"""The decode loop on the committed sample: rows share a batch and do not notice each other."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings, strategies

from containers.tensorrt.beam_search import Beams
from containers.tensorrt.generation import DecodingBatch, Prompt, generate
from containers.tensorrt.sampling import Sampling
from containers.tensorrt.stepping import StepInputs
from tests.containers.tensorrt.history_model import HistoryModel
from tests.containers.tensorrt.sample_model import NO_END, PROMPTS


def single(session, prompts, *, eos_token_ids=NO_END):
    """The one answer to each prompt."""
    return [tokens for [tokens] in generate(session, prompts, eos_token_ids=eos_token_ids)]


def one(session, prompt):
    return single(session, [prompt])[0]


def test_the_cache_gives_what_recomputing_everything_gives(session):
    prompt = PROMPTS[0]
    tokens = list(prompt.token_ids)
    for _ in range(prompt.max_new_tokens):
        ids = np.array([tokens], dtype=np.int64)
        inputs = StepInputs(ids, np.ones_like(ids), np.arange(len(tokens))[None])
        logits, _ = session.step(inputs)
        tokens += logits.likeliest()
    assert tuple(tokens[len(prompt.token_ids) :]) == one(session, prompt)


def test_an_end_of_text_token_ends_its_row_only(session):
    free = single(session, PROMPTS)
    end = free[0][3]
    ended = single(session, PROMPTS, eos_token_ids=frozenset({end}))
    expected = [row[: row.index(end)] if end in row else row for row in free]
    assert ended == expected
    assert len(ended[0]) == 3


def test_a_row_ends_where_its_owner_says_so(session):
    free = single(session, PROMPTS)
    seen = []

    def is_complete(token):
        seen.append(token)
        return len(seen) == 4

    prompts = [replace(PROMPTS[0], is_complete=is_complete), *PROMPTS[1:]]
    assert single(session, prompts) == [free[0][:4], *free[1:]]
    assert tuple(seen) == free[0][:4]


def test_the_cache_never_outgrows_the_longest_live_row(session):
    """A long prompt that ends early must not push a short one past the model's positions."""

    recording = Recording(session)
    prompts = [Prompt(tuple(range(1, 121)), max_new_tokens=3), Prompt((5, 6), max_new_tokens=100)]
    generate(recording, prompts, eos_token_ids=NO_END)
    # Three steps at the long prompt's length, then the short one alone, without padding.
    assert recording.shapes == [(2, 120), (2, 121), (2, 122), *((1, n) for n in range(5, 102))]


class Recording:
    """A session that keeps the shape of the attention mask of every run."""

    def __init__(self, session):
        self._session = session
        self.shapes = []

    def step(self, inputs, *others):
        self.shapes.append(inputs.attention_mask.shape)
        return self._session.step(inputs, *others)

    def __getattr__(self, name):
        return getattr(self._session, name)


def test_what_leaves_is_computed_no_more_and_the_others_do_not_notice(session):
    recording = Recording(session)
    batch = DecodingBatch(recording, eos_token_ids=NO_END)
    first, _, long, last = batch.join(PROMPTS)
    batch.step()
    batch.leave([long, first])
    assert batch.rows == 1
    while batch.rows:
        batch.step()
    assert last.results == [one(session, PROMPTS[3])]
    # The longest prompt has 7 tokens; without it there are no columns of padding.
    assert recording.shapes[:3] == [(4, 7), (3, 8), (1, 4)]
    batch.leave([last])
    assert batch.rows == 0


@settings(max_examples=60, deadline=None)
@given(data=strategies.data())
def test_any_coming_and_going_gives_what_each_prompt_gives_alone(data):
    """Beams, samples and greedy rows join, end and leave at random; cache and mask keep up."""
    model = HistoryModel(11, seed=3)
    ends = frozenset({0})
    batch = DecodingBatch(model, eos_token_ids=ends)
    waited_for = []
    for _ in range(data.draw(strategies.integers(1, 12))):
        match data.draw(strategies.sampled_from(["join", "step", "step", "leave"])):
            case "join":
                prompts = data.draw(strategies.lists(_prompts(), min_size=1, max_size=3))
                waited_for += zip(prompts, batch.join(prompts), strict=True)
            case "step" if batch.rows:
                batch.step()
            case "leave" if waited_for:
                place = data.draw(strategies.integers(0, len(waited_for) - 1))
                batch.leave([waited_for.pop(place)[1]])
    while batch.rows:
        batch.step()
    for prompt, continuation in waited_for:
        assert continuation.is_finished
        assert continuation.results == generate(model, [prompt], eos_token_ids=ends)[0]


def _prompts():
    ways = strategies.sampled_from(
        [{}, {"sampling": Sampling(seed=5)}, {"beams": Beams(3, num_return_sequences=2)}]
    )
    tokens = strategies.lists(strategies.integers(1, 10), min_size=1, max_size=6)
    return strategies.builds(
        lambda ids, length, way: Prompt(tuple(ids), length, **way),
        tokens, strategies.integers(1, 6), ways,
    )  # fmt: skip
