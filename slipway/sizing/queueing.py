"""How long requests wait: copies with batches, and arrivals that know nothing of each other.

A copy is a birth-death process. Requests arrive as a Poisson process. With `n` of them in the
copy, each takes as long as in a closed loop of `n` clients, so that `n` / that time leave a second.
Above the copy's largest batch, requests wait in order. Each copy gets its even share at random, as
SageMaker routes by default. All answers have the same length.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

# More requests than these in a copy are counted as refused: a queue that long holds no p99.
_LONGEST_QUEUE: Final = 400
_TAIL: Final = 0.01
_FULLEST: Final = 0.98
_NOTHING: Final = 1e-9
_HALVINGS: Final = 40


@dataclass(frozen=True)
class Answers:
    """What one copy does at a rate: p99, waiting included, and the mean number of its requests."""

    p99_seconds: float
    requests: float


def capacity(seconds: Sequence[float]) -> float:
    """Returns the most requests a second that a copy answers.

    `seconds` are those of a request in a closed loop of 1, 2, ... clients, up to the largest batch.
    """
    return max(number / each for number, each in enumerate(seconds, start=1))


def answers(rate: float, seconds: Sequence[float]) -> Answers | None:
    """Returns the times at a rate of requests a second; None where the queue grows for ever."""
    found = _found(rate, seconds)
    if found is None:
        return None

    mean = sum(share * number for number, share in enumerate(found))
    low, high = 0.0, seconds[-1]
    while _share_later(found, high, seconds) > _TAIL:
        low, high = high, high * 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_low = _share_later(found, middle, seconds) > _TAIL
        low, high = (middle, high) if is_low else (low, middle)
    return Answers(high, mean)


def holds(rate: float, seconds: Sequence[float], p99_seconds: float) -> bool:
    """Returns whether 99 of 100 requests of a copy are answered within a limit."""
    found = _found(rate, seconds)
    return found is not None and _share_later(found, p99_seconds, seconds) <= _TAIL


def _found(rate: float, seconds: Sequence[float]) -> list[float] | None:
    """Returns the share of requests that find 0, 1, ... others; None where none leave in time."""
    batch = len(seconds)
    leaving = [number / each for number, each in enumerate(seconds, start=1)]
    if rate >= leaving[-1] * _FULLEST:
        return None
    weights = [1.0]
    for number in range(1, batch + _LONGEST_QUEUE):
        weights.append(weights[-1] * rate / leaving[min(number, batch) - 1])
        if number > batch and weights[-1] < _TAIL**4 * max(weights):
            break
    total = sum(weights)
    # Random arrivals find as many as an outsider sees.
    return [weight / total for weight in weights]


def _share_later(found: Sequence[float], limit: float, seconds: Sequence[float]) -> float:
    leaving = len(seconds) / seconds[-1]
    return sum(
        share * _later(number, limit, seconds, leaving)
        for number, share in enumerate(found)
        if share > _NOTHING
    )


def _later(found: int, limit: float, seconds: Sequence[float], leaving: float) -> float:
    """Returns the chance that a request takes longer than a limit, if it finds so many others."""
    batch = len(seconds)
    own = seconds[min(found + 1, batch) - 1]
    ahead = found - batch + 1
    if ahead <= 0:
        return float(own > limit)
    spare = limit - own
    if spare <= 0:
        return 1.0
    # `ahead` requests have to leave first: a sum of so many exponential times.
    mean = spare * leaving
    if ahead > 30:
        return 0.5 * math.erfc((mean - ahead) / math.sqrt(2 * ahead))
    term, chance = math.exp(-mean), 0.0
    for number in range(ahead):
        chance += term
        term *= mean / (number + 1)
    return chance
