"""Makes requests, and compares the served answers with transformers' logits, in natural logarithms.

An answer's score is the probability of its start times the probability of its end. All spans of a
random model have nearly the same score, so that rounding may change their order. Each served span
is therefore compared with the score that transformers gives to the same span.

The sentences of the loads are a question with its context, of words that are one token each. A
sentence has 113 tokens with the special ones, so it fits a graph for 128 tokens and no shorter one.
"""

import json
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Encoding, Tokenizer, models, pre_tokenizers, processors

# https://huggingface.co/google-bert/bert-base-uncased/blob/main/vocab.txt has each of them.
WORDS = tuple(Path(__file__).with_name("words.txt").read_text("utf-8").split())
QUESTION_WORDS = 10
CONTEXT_WORDS = 100

_LOAD_BODIES = 64
TOLERANCE = 0.1
"""On a CPU, products in bf16 make 0.025 of difference in BERT-base, and a lost mask makes 0.7."""

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
_BODIES = 24
_SPANS = 10
_LONGEST_ANSWER_TOKENS = 15


def write_tokenizer(path: Path) -> None:
    """Writes a tokenizer for which each of the load's words is one token."""
    vocabulary = {word: number for number, word in enumerate((*_SPECIAL, *WORDS))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=_SPECIAL[1]))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(word, vocabulary[word]) for word in _SPECIAL[2:]],
    )
    tokenizer.save(str(path))


def _question(generator: random.Random, words: int = CONTEXT_WORDS) -> dict[str, str]:
    lengths = {"question": QUESTION_WORDS, "context": words}
    return {name: " ".join(generator.choices(WORDS, k=count)) for name, count in lengths.items()}


def make_questions(seed: int) -> list[dict[str, str]]:
    """Returns questions of 21 to 113 tokens, the same for the same seed."""
    generator = random.Random(seed)  # noqa: S311  # of an experiment, not of a secret
    lengths = (8, CONTEXT_WORDS // 3, CONTEXT_WORDS) * (_BODIES // 3)
    return [_question(generator, words) for words in lengths]


def make_bodies(sentences: int, seed: int) -> tuple[str, ...]:
    """Returns requests of that many sentences each, the same for the same seed."""
    generator = random.Random(seed)  # noqa: S311  # of an experiment, not of a secret
    bodies = ([_question(generator) for _ in range(sentences)] for _ in range(_LOAD_BODIES))
    return tuple(json.dumps({"inputs": inputs}) for inputs in bodies)


def body_of(question: Mapping[str, str]) -> str:
    """Returns a request for the best spans of a question, not widened to words."""
    parameters = {
        "top_k": _SPANS,
        "max_answer_len": _LONGEST_ANSWER_TOKENS,
        "align_to_words": False,
    }
    return json.dumps({"inputs": question, "parameters": parameters})


def difference(encoding: Encoding, logits: Sequence[Sequence[float]], answer: str) -> float:
    """Returns the largest difference between the logarithms of served and expected scores.

    It is infinite if the answer does not have the requested form. The best span that was served may
    also differ from the best expected one. The logits are of the starts and of the ends, by token.
    """
    context = [token for token, part in enumerate(encoding.sequence_ids) if part == 1]
    starts, ends = (_log_probabilities(np.array(each), context) for each in logits)
    first = {encoding.offsets[token][0]: token for token in context}
    last = {encoding.offsets[token][1]: token for token in context}
    best = max(
        starts[start] + ends[end]
        for start in context
        for end in context
        if start <= end < start + _LONGEST_ANSWER_TOKENS
    )
    try:
        spans = json.loads(answer)
        expected = [starts[first[span["start"]]] + ends[last[span["end"]]] for span in spans]
        served = [math.log(span["score"]) for span in spans]
        found = [abs(ours - theirs) for ours, theirs in zip(served, expected, strict=True)]
        return max(*found, best - expected[0]) if len(spans) == _SPANS else math.inf
    except (ValueError, TypeError, LookupError):
        return math.inf


# Any: float64.
def _log_probabilities(logits: Any, context: Sequence[int]) -> dict[int, float]:
    """Returns the logarithms over the context and the first token, which is "no answer here"."""
    total = math.log(np.exp(logits[[0, *context]]).sum())
    return {token: float(logits[token]) - total for token in context}
