"""The sentences of the loads: a question with its context, of words that are one token each.

A sentence has 113 tokens with the special ones, so it fits a graph for 128 tokens and no shorter
one.
"""

import json
import random
from pathlib import Path

# https://huggingface.co/google-bert/bert-base-uncased/blob/main/vocab.txt has each of them.
WORDS = tuple(Path(__file__).with_name("words.txt").read_text("utf-8").split())
QUESTION_WORDS = 10
CONTEXT_WORDS = 100

_BODIES = 64


def make_bodies(sentences: int, seed: int) -> tuple[str, ...]:
    """Returns requests of that many sentences each, the same for the same seed."""
    generator = random.Random(seed)  # noqa: S311  # of an experiment, not of a secret

    def text(words: int) -> str:
        return " ".join(generator.choices(WORDS, k=words))

    return tuple(
        json.dumps(
            {
                "inputs": [
                    {"question": text(QUESTION_WORDS), "context": text(CONTEXT_WORDS)}
                    for _ in range(sentences)
                ]
            }
        )
        for _ in range(_BODIES)
    )
