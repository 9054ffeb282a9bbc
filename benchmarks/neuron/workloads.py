"""The requests: questions of the sample's kind, and the agreement that their answers must have.

They are the sample's own text (`samples/bert-qa/corpus.py`), about subjects that it was not trained
on. Their lengths are not adjusted: 25 to 125 tokens, 54 in the mean.
"""

import json
import math
import runpy
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from benchmarks.errors import BenchmarkError
from benchmarks.neuron.design import SEQUENCE_LENGTHS, Workload
from benchmarks.program import ROOT

# Run by its path, because the sample's folder is no package.
_corpus_examples = runpy.run_path(str(ROOT / "samples" / "bert-qa" / "corpus.py"))["examples"]
# Different requests, sent in turn; three for each client at the highest concurrency.
_BODIES = 48
# Scores are products of two probabilities in float32, computed in another order.
_RELATIVE_TOLERANCE = 0.001


@dataclass(frozen=True)
class Request:
    """A question with a context that fits into one window, and the tokens of both together."""

    question: str
    context: str
    tokens: int

    @property
    def body(self) -> str:
        """Returns the body. It does not ask for whole words, a step that the naive server lacks."""
        return json.dumps(
            {
                "inputs": {"question": self.question, "context": self.context},
                "parameters": {"align_to_words": False},
            }
        )


@dataclass(frozen=True)
class Answer:
    start: int
    end: int
    score: float

    def agrees_with(self, other: "Answer") -> bool:
        return self.has_span_of(other) and math.isclose(
            self.score, other.score, rel_tol=_RELATIVE_TOLERANCE
        )

    def has_span_of(self, other: "Answer") -> bool:
        return (self.start, self.end) == (other.start, other.end)


def make_requests(workload: Workload, tokenizer_file: Path, seed: int) -> tuple[Request, ...]:
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    found: list[Request] = []
    for example in _corpus_examples(held_out=True, seed=seed):
        context = example.context
        if workload.is_filled:
            context = _filled(tokenizer, example.question, context)
        tokens = len(tokenizer.encode(example.question, context))
        if tokens <= SEQUENCE_LENGTHS[-1]:
            found.append(Request(example.question, context, tokens))
            if len(found) == _BODIES:
                break
    return tuple(found)


def _filled(tokenizer: Tokenizer, question: str, context: str) -> str:
    """Returns the context with as many of its own words behind it as the naive server's length has.

    A word may be several tokens, so that the last few may stay free.
    """
    words = context.split()
    # Two words share no token.
    tokens_of = {word: len(tokenizer.encode(word, add_special_tokens=False)) for word in words}
    free = SEQUENCE_LENGTHS[-1] - len(tokenizer.encode(question, context))
    added = []
    for word in words * (SEQUENCE_LENGTHS[-1] // len(words) + 1):
        if tokens_of[word] <= free:
            added.append(word)
            free -= tokens_of[word]
    return " ".join([context, *added])


def read_answer(request: Request, answer: str) -> Answer:
    try:
        document = json.loads(answer)
        start, end, score = document["start"], document["end"], float(document["score"])
        is_right = document["answer"] == request.context[start:end] and 0 <= score <= 1
    except (ValueError, TypeError, KeyError):
        is_right = False
    if not is_right:
        raise BenchmarkError(f"not an answer of the container's form: {answer[:500]}")
    return Answer(start, end, score)
