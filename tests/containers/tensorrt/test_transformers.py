"""The decode loop gives what Hugging Face's `generate` gives, with the sample's weights."""

import numpy as np
import pytest

from tests.support.groups import TORCH_MARKS, load

torch = load("torch", group="torch")
transformers = load("transformers", group="torch")

# After the skips: without the extra, nothing below is needed.
from containers.tensorrt.beam_search import Beams  # noqa: E402
from containers.tensorrt.generation import Prompt, generate, left_pad  # noqa: E402
from containers.tensorrt.sampling import Sampling, choose_token  # noqa: E402
from tests.containers.tensorrt import sample_model  # noqa: E402

pytestmark = [*TORCH_MARKS]

PROMPTS = tuple(prompt.token_ids for prompt in sample_model.PROMPTS)
NEW_TOKENS = 14
PADDING = 0


@pytest.fixture(scope="module")
def model():
    return transformers.GPT2LMHeadModel.from_pretrained(sample_model.SAMPLE).eval()


def expected(model, ends, **parameters):
    """What `generate` gives for each of `PROMPTS`, without end tokens and padding."""
    ids, mask = left_pad(PROMPTS)
    outputs = model.generate(
        torch.tensor(ids),
        attention_mask=torch.tensor(mask),
        max_new_tokens=NEW_TOKENS,
        do_sample=False,
        eos_token_id=sorted(ends),
        pad_token_id=PADDING,
        **parameters,
    )
    answers = []
    for row in outputs[:, ids.shape[1] :].tolist():
        end = next((place for place, token in enumerate(row) if token in ends), len(row))
        answers.append(tuple(row[:end]))
    per_prompt = len(answers) // len(PROMPTS)
    return [answers[first : first + per_prompt] for first in range(0, len(answers), per_prompt)]


# 0 ends a text of the sample; with two frequent tokens beside it, answers end at many lengths.
@pytest.mark.parametrize("ends", [{0}, {0, 263, 300}], ids=["one end", "several ends"])
@pytest.mark.parametrize("early_stopping", [False, True, "never"])
@pytest.mark.parametrize("length_penalty", [-1.0, 2.0])
def test_beam_searches_that_share_a_batch(model, session, length_penalty, early_stopping, ends):
    num_beams = 5
    beams = Beams(num_beams, num_beams, length_penalty, early_stopping)
    found = generate(
        session,
        [Prompt(prompt, NEW_TOKENS, beams=beams) for prompt in PROMPTS],
        eos_token_ids=frozenset(ends),
    )
    assert found == expected(
        model,
        frozenset(ends),
        num_beams=num_beams,
        num_return_sequences=num_beams,
        length_penalty=length_penalty,
        early_stopping=early_stopping,
    )


def test_greedy_rows_that_share_a_batch(model, session):
    ends = frozenset({0})
    found = generate(
        session, [Prompt(prompt, NEW_TOKENS) for prompt in PROMPTS], eos_token_ids=ends
    )
    assert found == expected(model, ends)


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(temperature=0.7),
        Sampling(top_k=5),
        Sampling(top_p=0.6),
        Sampling(temperature=1.8, top_k=9, top_p=0.8),
    ],
    ids=str,
)
def test_what_may_be_drawn(sampling):
    """The tokens that are left, and how often each is drawn."""
    logits = np.random.default_rng(1).standard_normal(16).astype(np.float32) * 2
    scores = torch.tensor(logits[None])
    warpers = transformers.generation.logits_process
    scores = warpers.TemperatureLogitsWarper(sampling.temperature)(None, scores)
    if sampling.top_k is not None:
        scores = warpers.TopKLogitsWarper(sampling.top_k)(None, scores)
    if sampling.top_p < 1.0:
        scores = warpers.TopPLogitsWarper(sampling.top_p)(None, scores)
    wanted = torch.softmax(scores, dim=-1)[0].numpy()
    random = np.random.Generator(np.random.PCG64(2))
    draws = 20_000
    counts = np.zeros(16)
    for _ in range(draws):
        counts[choose_token(logits, sampling, random.random())] += 1
    assert not counts[wanted == 0].any()
    # Four standard deviations are at most 0.0142.
    assert counts / draws == pytest.approx(wanted, abs=0.0142)
