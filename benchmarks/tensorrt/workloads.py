"""The requests, and the check that an answer has as many tokens as it must.

Texts are words of the tokenizer that `models` makes. Each word is one token, so a prompt has
exactly the tokens it should, and the words of an answer are counted instead of trusted.
"""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.errors import BenchmarkError
from benchmarks.models import Model
from benchmarks.tensorrt.design import Workload

# Different requests, sent in turn.
_BODIES = 64
# That many requests in a row have lengths from every part of the range, so that short runs differ
# less.
_STRATA = 8


def word(token: int) -> str:
    return f"t{token}"


def token_of(text: str) -> int:
    return int(text.removeprefix("t"))


@dataclass(frozen=True)
class Request:
    """One request; without a seed its tokens are the likeliest."""

    prompts: tuple[tuple[int, ...], ...]
    new_tokens: int
    seed: int | None = None
    top_k: int | None = None

    @property
    def body(self) -> str:
        parameters: dict[str, int | bool] = {"max_new_tokens": self.new_tokens}
        if self.seed is not None:
            parameters |= {"do_sample": True, "seed": self.seed}
        if self.top_k is not None:
            parameters["top_k"] = self.top_k
        return json.dumps(
            {
                "inputs": [" ".join(map(word, prompt)) for prompt in self.prompts],
                "parameters": parameters,
            }
        )


def make_requests(workload: Workload, model: Model, seed: int) -> tuple[Request, ...]:
    # Of an experiment, not of a secret.
    generator = random.Random(f"{seed} {workload.name}")  # noqa: S311
    new_tokens: list[int] = []
    while len(new_tokens) < _BODIES:
        strata = [_draw(workload, part, generator) for part in range(_STRATA)]
        generator.shuffle(strata)
        new_tokens += strata
    return tuple(
        Request(
            prompts=tuple(
                tuple(generator.randrange(model.vocabulary) for _ in range(workload.prompt_tokens))
                for _ in range(workload.texts)
            ),
            new_tokens=count,
            seed=number if workload.is_sampled else None,
            top_k=workload.top_k,
        )
        for number, count in enumerate(new_tokens)
    )


def _draw(workload: Workload, part: int, generator: random.Random) -> int:
    """Returns a number of new tokens from one of the equal parts of the workload's range."""
    width = (workload.most_new_tokens + 1 - workload.least_new_tokens) / _STRATA
    return workload.least_new_tokens + int((part + generator.random()) * width)


def generated_tokens(request: Request, answer: str) -> tuple[tuple[int, ...], ...]:
    try:
        texts: Sequence[str] = [each["generated_text"] for each in json.loads(answer)]
        tokens = tuple(tuple(map(token_of, text.split())) for text in texts)
    except (ValueError, TypeError, KeyError):
        raise BenchmarkError(f"not an answer of the container's form: {answer[:500]}") from None
    expected = [request.new_tokens] * len(request.prompts)
    counts = [len(each) for each in tokens]
    if counts != expected:
        raise BenchmarkError(
            f"an answer has {counts} new tokens instead of {expected}, so that its time means "
            f"nothing: {answer[:500]}"
        )
    return tokens
