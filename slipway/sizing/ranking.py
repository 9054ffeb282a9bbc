"""Compares instance types for a model and its traffic."""

import bisect
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from slipway.facts.prices import Price, instance_price_per_hour
from slipway.planning.cost import HOURS_PER_MONTH
from slipway.planning.memory_estimate import MemoryEstimate
from slipway.sizing.facts import Band, band_of, constants
from slipway.sizing.latency import Load, Server, Times, request_times
from slipway.sizing.measured import Correction
from slipway.sizing.network import Network
from slipway.sizing.queueing import Answers, answers, capacity, holds
from slipway.sizing.traffic import Traffic

LEVELS: Final = (1, 2, 4, 8, 16, 32, 64)
LARGEST_BATCH: Final = 64
"""Requests that a copy answers at a time, where no config limits them."""
_MOST_INSTANCES: Final = 10_000
_SECONDS_PER_MONTH: Final = HOURS_PER_MONTH * 3600
_MILLION: Final = 1_000_000


@dataclass(frozen=True)
class Goal:
    """The traffic and the latency that a fleet has to hold.

    The limit is that of the 99th percentile. Prices are the region's. `cached_tokens` are those at
    the beginning of each prompt that the engine has kept.
    """

    traffic: Traffic
    p99_seconds: float
    input_tokens: int
    output_tokens: int
    region: str
    cached_tokens: int = 0


@dataclass(frozen=True)
class Candidate:
    """One way to serve a model on an instance type.

    `memory` is estimated with one request in the batch, whose most the config may limit.
    """

    instance_type: str
    server: Server
    network: Network
    memory: MemoryEstimate
    most_requests: int = LARGEST_BATCH

    @property
    def batch(self) -> int:
        """Returns the requests whose cache fits beside the weights; 0 if none does."""
        memory, most = self.memory, self.most_requests
        room = memory.available_gib - memory.weights_gib - memory.overhead_gib
        each = memory.cache_gib or 0.0
        return 0 if room < each else min(most, int(room / each)) if each else most


@dataclass(frozen=True)
class Range:
    """A number with its band: the lowest, the expected and the highest; None where unknown."""

    low: float | None
    expected: float | None
    high: float | None


@dataclass(frozen=True)
class Level:
    """One copy with so many clients that always wait for an answer."""

    concurrency: int
    first_token_seconds: Range
    token_seconds: Range
    request_seconds: Range
    tokens_per_second: Range
    basis: str


@dataclass(frozen=True)
class Ranked:
    """An instance type that holds the traffic.

    `degree` counts the GPUs of a copy, `copies` those of an instance, and `largest_batch` the
    requests that a copy answers at a time. `memory` is what lies on one GPU with that batch, in
    GiB: weights, cache, the rest, and the part that the engine may use. Times of tokens are at the
    load of the traffic. `p99_seconds` has the waiting included; its slow end is None where the
    queue would grow for ever. `levels` have the throughput of one copy. Costs of requests and of
    answers' tokens are at the mean rate. `usd_per_hour` is of one instance; None where no source
    says.
    """

    instance_type: str
    degree: int
    copies: int
    largest_batch: int
    memory: dict[str, float]
    instances: Range
    first_token_seconds: Range
    token_seconds: Range
    p99_seconds: Range
    levels: tuple[Level, ...]
    usd_per_month: Range
    usd_per_million_requests: Range
    usd_per_million_tokens: Range
    usd_per_hour: float | None
    price_as_of: str | None
    basis: str


@dataclass(frozen=True)
class LeftOut:
    """An instance type that is not ranked, and why; the time of one request, if it is too long."""

    instance_type: str
    reason: str
    seconds: float | None = None


@dataclass(frozen=True)
class Ranking:
    """Types by cost, those without a price last; and the types that are left out."""

    goal: Goal
    ranked: tuple[Ranked, ...]
    left_out: tuple[LeftOut, ...]


def rank(
    ways: Iterable[tuple[str, Sequence[Candidate] | str]],
    goal: Goal,
    correction: Correction | None = None,
) -> Ranking:
    """Returns the ranking of types, each with its candidates, or the reason for having none."""
    found = [_best(name, each, goal, correction) for name, each in ways]
    ranked = sorted((each for each in found if isinstance(each, Ranked)), key=_order)
    return Ranking(goal, tuple(ranked), tuple(e for e in found if isinstance(e, LeftOut)))


def _order(ranked: Ranked) -> tuple[bool, float, float]:
    usd = ranked.usd_per_month.expected
    instances = ranked.instances.expected or 0.0
    return (usd is None, usd if usd is not None else instances, ranked.p99_seconds.expected or 0.0)


def levels(candidate: Candidate, goal: Goal, correction: Correction | None) -> tuple[Level, ...]:
    """Returns the throughput of one copy by concurrency, whatever the traffic of the goal is."""
    return tuple(_Judged(candidate, goal, correction).levels())


def _best(
    name: str, ways: Sequence[Candidate] | str, goal: Goal, correction: Correction | None
) -> Ranked | LeftOut:
    if isinstance(ways, str):
        return LeftOut(name, ways)
    found = [_Judged(each, goal, correction).ranked() for each in ways]
    if ranked := [each for each in found if isinstance(each, Ranked)]:
        return min(ranked, key=_order)
    # The reason of the way that comes nearest to an answer.
    left_out = (each for each in found if isinstance(each, LeftOut))
    return min(left_out, key=lambda each: (each.seconds is None, each.seconds or 0.0))


@dataclass(frozen=True)
class _Judged:
    candidate: Candidate
    goal: Goal
    given: Correction | None

    @property
    def _correction(self) -> Correction | None:
        covers = self.given is not None and self.given.covers(self.candidate.server)
        return self.given if covers else None

    def ranked(self) -> Ranked | LeftOut:
        name, memory = self.candidate.instance_type, self.candidate.memory
        batch, goal = self.candidate.batch, self.goal
        if batch == 0:
            parts = f"one request needs more memory than {memory.room}: {memory.parts}"
            return LeftOut(name, parts)
        alone, band = self._times(1).request, self._band(1)
        scales = (1 / band.factor, 1.0, band.factor)
        if alone > goal.p99_seconds:
            low, middle, high = (_seconds(alone * scale) for scale in scales)
            reason = f"one request alone takes {middle} ({low} to {high}, {band.basis})"
            return LeftOut(name, reason, alone)
        counts = [self._count(scale) for scale in scales]
        held = [self._answers(counts[1] or _MOST_INSTANCES, scale) for scale in scales]
        if counts[1] is None or held[1] is None:
            reason = f"no number of instances up to {_MOST_INSTANCES:,} holds the traffic"
            return LeftOut(name, reason, alone)
        load = max(1, min(batch, math.ceil(held[1].requests)))
        times, band = self._times(load), self._band(load)
        price = instance_price_per_hour(name, goal.region)
        requests = goal.traffic.mean * _SECONDS_PER_MONTH / _MILLION
        return Ranked(
            instance_type=name,
            degree=self.candidate.server.degree,
            copies=memory.copies,
            largest_batch=batch,
            memory={
                "weights_gib": memory.weights_gib,
                "cache_gib": round((memory.cache_gib or 0.0) * batch, 3),
                "rest_gib": memory.overhead_gib,
                "available_gib": memory.available_gib,
            },
            instances=Range(*counts),
            first_token_seconds=_around(times.first_token, band),
            token_seconds=_around(times.per_token, band),
            p99_seconds=Range(*(None if each is None else each.p99_seconds for each in held)),
            levels=tuple(self.levels()),
            usd_per_month=_usd(price, counts, 1.0),
            usd_per_million_requests=_usd(price, counts, requests),
            usd_per_million_tokens=_usd(price, counts, requests * goal.output_tokens),
            usd_per_hour=price.usd if price else None,
            price_as_of=price.as_of.isoformat() if price else None,
            basis=band.basis,
        )

    def levels(self) -> Iterator[Level]:
        for concurrency in (level for level in LEVELS if level <= self.candidate.batch):
            times, band = self._times(concurrency), self._band(concurrency)
            tokens = concurrency * self.goal.output_tokens / times.request
            yield Level(
                concurrency,
                _around(times.first_token, band),
                _around(times.per_token, band),
                _around(times.request, band),
                _around(tokens, band),
                band.basis,
            )

    def _times(self, concurrency: int) -> Times:
        goal = self.goal
        new = goal.input_tokens - goal.cached_tokens
        load = Load(concurrency, goal.input_tokens, goal.output_tokens, new)
        times = request_times(self.candidate.network, self.candidate.server, load, constants())
        factor = 1.0 if self._correction is None else self._correction.at(concurrency)
        parts = (times.first_token, times.per_token, times.request)
        return Times(*(factor * each for each in parts))

    def _band(self, concurrency: int) -> Band:
        own = self.candidate
        if self._correction is not None:
            return self._correction.band(own.network, own.instance_type, own.server, concurrency)
        return band_of(own.network, own.server, concurrency)

    def _answers(self, instances: int, scale: float) -> Answers | None:
        rate = self.goal.traffic.peak / (instances * self.candidate.memory.copies)
        return answers(rate, [each * scale for each in self._closed_loop])

    @cached_property
    def _closed_loop(self) -> list[float]:
        return [self._times(number).request for number in range(1, self.candidate.batch + 1)]

    def _count(self, scale: float) -> int | None:
        """Returns the fewest instances that hold the limit if times are so many times as long."""
        seconds = [each * scale for each in self._closed_loop]
        if seconds[0] > self.goal.p99_seconds:
            return None

        def is_enough(count: int) -> bool:
            rate = self.goal.traffic.peak / (count * self.candidate.memory.copies)
            return holds(rate, seconds, self.goal.p99_seconds)

        per_instance = capacity(seconds) * self.candidate.memory.copies
        low = high = max(1, math.floor(self.goal.traffic.peak / per_instance))
        while not is_enough(high):
            low, high = high + 1, high * 2
            if high > _MOST_INSTANCES:
                return None
        # The first of the range that is enough.
        return low + bisect.bisect_left(range(low, high), x=True, key=is_enough)


def _usd(price: Price | None, counts: Sequence[int | None], per: float) -> Range:
    if price is None:
        return Range(None, None, None)
    month = price.usd * HOURS_PER_MONTH / per
    return Range(*(None if count is None else round(count * month, 4) for count in counts))


def _around(value: float, band: Band) -> Range:
    return Range(value / band.factor, value, value * band.factor)


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value >= 1 else f"{1000 * value:.0f} ms"
