"""The decode loop: an answer does not depend on the other rows of its batch."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from containers.triton.decoding import answers

VOCABULARY, START, END = 11, 0, 1
PROMPTS = st.lists(
    st.lists(st.integers(2, VOCABULARY - 1), min_size=1, max_size=6).map(tuple),
    min_size=1,
    max_size=7,
)


@dataclass
class State:
    """The sum of each row's prompt, and the tokens so far."""

    sums: list[int]
    tokens: list[list[int]]


class SumSession:
    """The next token follows from the prompt's tokens and from all tokens so far."""

    def __init__(self):
        self.rows = []

    def encode(self, input_ids, attention_mask):
        assert input_ids.shape == attention_mask.shape
        # Padding stands on the right alone.
        assert (np.diff(attention_mask, axis=1) <= 0).all()
        sums = (input_ids * attention_mask).sum(axis=1)
        return State([int(each) for each in sums], [[] for _ in sums])

    def step(self, tokens, state):
        assert tokens.shape == (len(state.sums), 1)
        self.rows.append(len(state.sums))
        logits = np.zeros((len(state.sums), VOCABULARY), dtype=np.float32)
        for row, (total, so_far) in enumerate(zip(state.sums, state.tokens, strict=True)):
            so_far.append(int(tokens[row, 0]))
            logits[row, (total * 7 + 3 * sum(so_far) + len(so_far)) % VOCABULARY] = 1
        return logits, state

    def select(self, state, rows):
        assert list(rows) == sorted(set(rows))
        return State([state.sums[row] for row in rows], [state.tokens[row] for row in rows])


def answered(prompts, most, session=None):
    return answers(
        session or SumSession(),
        prompts,
        max_new_tokens=most,
        start_token_id=START,
        end_token_ids=frozenset({END}),
    )


@given(prompts=PROMPTS, most=st.integers(1, 8))
def test_a_row_is_answered_as_if_it_were_alone(prompts, most):
    found = answered(prompts, most)
    assert found == [answered([prompt], most)[0] for prompt in prompts]
    for answer in found:
        assert END not in answer
        assert len(answer) <= most


def test_a_row_that_has_ended_is_not_computed_again():
    session = SumSession()
    prompts = [(number,) for number in range(2, VOCABULARY)]
    found = answered(prompts, 8, session)
    lengths = [len(answer) for answer in found]
    assert len(set(lengths)) > 2
    # A row is computed once for each of its tokens, and once for the end unless the limit ends it.
    assert sum(session.rows) == sum(length + (length < 8) for length in lengths)


@pytest.mark.parametrize("most", [1, 2])
def test_the_limit_ends_every_row(most):
    session = SumSession()
    answers(session, [(2,)], max_new_tokens=most, start_token_id=START, end_token_ids=frozenset())
    assert len(session.rows) == most
