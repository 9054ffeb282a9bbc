"""Carries a design out: self-test, then every cell in rounds of a random order."""

import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from slipway.benchmarking.answers import Observed, is_expired, observe
from slipway.benchmarking.arrivals import constant_arrivals, poisson_arrivals, read_trace
from slipway.benchmarking.connections import LoadError
from slipway.benchmarking.design import Cell, LoadedDesign
from slipway.benchmarking.endpoint import (
    Endpoint,
    HourlyCost,
    Instances,
    cost_per_hour,
    look_at_instances,
)
from slipway.benchmarking.figures import Figures, failures_of, trial_figures
from slipway.benchmarking.load import ClosedLoad, Load, OpenLoad, Sample, connections_to, run_load
from slipway.benchmarking.requests import make_bodies
from slipway.benchmarking.self_test import Level, driver_limit, test_level
from slipway.benchmarking.signed import SignedRequests, signed_target
from slipway.codes.code import Code
from slipway.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_DEFAULT_CONNECTIONS = 256
_TIMEOUT_SECONDS = 70.0  # SageMaker's 60, and the way there and back
# So many failures in a row, over so long a time, end the run.
_MOST_FAILURES = 50
_PATIENCE_SECONDS = 10.0

Say = Callable[[str], None]
Write = Callable[["TrialRow", Sequence[tuple[Sample, Observed]]], None]
"""Keeps the requests of a trial."""


class StoppedError(Exception):
    """The run cannot go on; the message says why."""


class _ExpiredError(StoppedError):
    """The credentials are no longer valid."""


@dataclass(frozen=True)
class TrialRow:
    """One trial.

    Args:
        cell: its levels.
        round: from 1.
        order: its place in the run, from 1.
        began_at: when it began.
        figures: what it measured.
        failures: how often each failure came.
        instances: that the endpoint had at its end.
        cost: of the instances.
        client_limit: why it measured the client; None if it did not.
        is_cut: whether it ended early.
    """

    cell: Cell
    round: int
    order: int
    began_at: datetime
    figures: Figures
    failures: Mapping[str, int]
    instances: tuple[Instances, ...]
    cost: HourlyCost
    client_limit: str | None
    is_cut: bool = False

    @property
    def counts(self) -> bool:
        """Returns whether it is a result: whole, and of the endpoint."""
        return not self.is_cut and self.client_limit is None


@dataclass
class Run:
    """One run of a design.

    Args:
        endpoint: what is measured.
        loaded: the design.
        tokenizer: the model's; None if there is none.
        tokenizer_note: where it is, or why there is none.
        say: called with the progress.
        write: called with each trial and its requests.
        test: the self-test of a level.
        patience_seconds: how long nothing but failures may come.

    Attributes:
        levels: what the self-test found.
        trials: those that were measured.
        stopped: why the run ended early; None if it did not.
        problem: the same as a report where the user can put it right.
    """

    endpoint: Endpoint
    loaded: LoadedDesign
    tokenizer: "Tokenizer | None"
    tokenizer_note: str
    root: Path
    say: Say
    write: Write
    test: Callable[[int | None, float | None, bytes], Level] = test_level
    patience_seconds: float = _PATIENCE_SECONDS
    levels: list[Level] = field(default_factory=list)
    trials: list[TrialRow] = field(default_factory=list)
    stopped: str | None = None
    problem: UserError | None = None

    def prepare(self) -> None:
        """Makes the requests of every cell, before anything is sent.

        Raises:
            UserError: the texts or the trace cannot be read.
        """
        self._bodies = {
            cell: make_bodies(self.loaded, cell, self.tokenizer, self.tokenizer_note, self.root)
            for cell in self.loaded.cells()
        }
        self._sagemaker = self.endpoint.access.client("sagemaker")
        self._signed: dict[str | None, SignedRequests] = {}
        trace = self.loaded.design.trace
        self._trace = None
        if trace is not None:
            beside = self.loaded.path.parent / trace
            self._trace = read_trace(beside if beside.exists() else self.root / trace, self.root)

    def first_body(self) -> tuple[Cell, bytes]:
        """Returns a cell and one of its requests, for a first look at the endpoint."""
        cell, bodies = next(iter(self._bodies.items()))
        return cell, bodies[0]

    def check_variants(self) -> None:
        """Looks for the variants that the design asks by name.

        Raises:
            UserError: the endpoint lacks one.
        """
        asked = dict.fromkeys(filter(None, map(self.variant, self._bodies)))
        known = [each.variant for each in self._instances()] if asked else []
        missing = [name for name in asked if name not in known]
        if missing and known:
            raise UserError.of(
                Code.BENCH_INPUT,
                f"{self.endpoint.name} has no variant {' and no variant '.join(missing)}",
                f"Name variants of the endpoint in `factors`: {', '.join(known)}.",
            )

    def variant(self, cell: Cell) -> str | None:
        """Returns the production variant that a cell asks."""
        if cell.engine is not None and self.loaded.design.factors.engine is not None:
            return self.loaded.design.factors.engine[cell.engine]
        return cell.variant

    def carry_out(self) -> None:
        """Tests the client, then measures every cell.

        Ctrl-C, expired credentials and an endpoint that answers no more end it early. What was
        measured stays.
        """
        try:
            refused = self._test_levels()
            cells = [cell for cell in self._bodies if _level_of(cell) not in refused]
            design = self.loaded.design
            generator = random.Random(design.seed)  # noqa: S311  # of an experiment
            # Every round has each cell once: an endpoint that gets slower does so for all alike.
            planned = [
                (number, cell)
                for number in range(1, design.trials + 1)
                for cell in generator.sample(cells, len(cells))
            ]
            for order, (number, cell) in enumerate(planned, start=1):
                self._measure(cell, number, order, len(planned))
        except KeyboardInterrupt:
            self.stopped = "it was stopped by Ctrl-C"
        except UserError as error:
            self.stopped, self.problem = error.problems[0].message, error
        except StoppedError as error:
            self.stopped = str(error)

    def _test_levels(self) -> set[tuple[int | None, float | None]]:
        """Returns the levels that the client cannot measure."""
        refused = set()
        body = max((bodies[0] for bodies in self._bodies.values()), key=len)
        for level in dict.fromkeys(map(_level_of, self._bodies)):
            if level == (None, None):
                continue  # the requests of a trace are judged as they are sent
            found = self.test(*level, body)
            self.levels.append(found)
            if found.reason is not None:
                refused.add(level)
                self.say(f"self-test: {shown_level(*level)} is not measured: {found.reason}")
        return refused

    def _measure(self, cell: Cell, number: int, order: int, total: int) -> None:
        load = self._load(cell, order)
        began_at = datetime.now(UTC)
        stop: BaseException | None = None
        try:
            run_load(load.run())
        except (KeyboardInterrupt, StoppedError) as error:
            stop = error
        except LoadError as error:
            stop = StoppedError(str(error))
        row, requests = self._row(cell, number, order, began_at, load, is_cut=stop is not None)
        if requests:
            self.trials.append(row)
            self.write(row, requests)
            self.say(f"{order}/{total}  {_described(row)}")
        if stop is not None:
            raise stop

    def _load(self, cell: Cell, order: int) -> Load:
        requests = self._requests_to(self.variant(cell))

        def request(body: bytes) -> bytes:
            try:
                return requests.of(body)
            # botocore's providers run the user's own programs: this can be any exception.
            except Exception as error:
                raise _ExpiredError(f"the credentials cannot be renewed: {error}") from None

        return Load(
            self._specification(cell, order),
            connections_to(requests.target.url, _TIMEOUT_SECONDS),
            request,
            _Watch(self.patience_seconds),
        )

    def _requests_to(self, variant: str | None) -> SignedRequests:
        """Returns what signs requests to a variant; making boto3's client takes its time."""
        if variant not in self._signed:
            form, endpoint = self.loaded.design.request, self.endpoint
            target = signed_target(
                endpoint.access,
                endpoint.name,
                stream=form.stream,
                variant=variant,
                component=endpoint.component,
                content_type=form.content_type,
            )
            self._signed[variant] = SignedRequests(target)
        return self._signed[variant]

    def _specification(self, cell: Cell, order: int) -> ClosedLoad | OpenLoad:
        design, bodies = self.loaded.design, self._bodies[cell]
        warm_up = design.warm_up_seconds
        if cell.concurrency is not None:
            return ClosedLoad(
                bodies,
                cell.concurrency,
                warm_up_requests=1,
                warm_up_seconds=warm_up,
                requests=design.requests,
                seconds=design.seconds,
            )
        if self._trace is not None:
            arrivals = list(self._trace)
        else:
            rate = cell.requests_per_second or 1.0
            end = warm_up + design.seconds
            if design.arrivals == "constant":
                arrivals = list(constant_arrivals(rate, end))
            else:
                arrivals = list(poisson_arrivals(rate, end, design.seed * 100_000 + order))
        connections = design.connections or _DEFAULT_CONNECTIONS
        return OpenLoad(bodies, arrivals, connections, warm_up)

    def _row(
        self,
        cell: Cell,
        number: int,
        order: int,
        began_at: datetime,
        load: Load,
        *,
        is_cut: bool,
    ) -> tuple[TrialRow, list[tuple[Sample, Observed]]]:
        key = self.loaded.design.request.tokens_key
        count = self._count_tokens if self.tokenizer is not None else None
        counted = [[each for each in client if each.counts] for client in load.samples]
        requests = [(each, observe(each, key, count)) for client in counted for each in client]
        observed = [each for _, each in requests]
        instances = self._instances()
        cost = cost_per_hour(instances, self.variant(cell), self.endpoint.environment)
        seconds = _measured_seconds(cell, counted)
        figures = trial_figures(observed, seconds, cell.batch, cost.usd)
        failures = failures_of(observed)
        limit = driver_limit(load)
        row = TrialRow(
            cell, number, order, began_at, figures, failures, instances, cost, limit, is_cut
        )
        return row, requests

    def _count_tokens(self, text: str) -> int:
        assert self.tokenizer is not None  # noqa: S101  # the caller looked
        return len(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def _instances(self) -> tuple[Instances, ...]:
        try:
            return look_at_instances(self._sagemaker, self.endpoint.name)
        except (BotoCoreError, ClientError):
            return ()  # there is no cost then, and the requests say what is wrong


def _measured_seconds(cell: Cell, counted: Sequence[Sequence[Sample]]) -> float:
    """Returns the time that the throughput is of: by Little's law in the closed loop."""
    known = [client for client in counted if client]
    if not known:
        return 0.0
    if cell.concurrency is not None:
        spans = [max(e.ended_at for e in c) - min(e.sent_at for e in c) for c in known]
        return math.fsum(spans) / len(known)
    first = min(each.intended_at for client in known for each in client)
    return max(each.ended_at for client in known for each in client) - first


class _Watch:
    """Ends a load whose requests do nothing but fail."""

    def __init__(self, patience_seconds: float) -> None:
        self._patience_seconds = patience_seconds
        self._failures = 0
        self._since: float | None = None

    def __call__(self, sample: Sample) -> None:
        failure = sample.failure
        if failure is None:
            self._failures, self._since = 0, None
            return
        if is_expired(sample.reply):
            raise _ExpiredError(f"the credentials are no longer valid: {failure}")
        now = time.perf_counter()
        self._failures += 1
        self._since = now if self._since is None else self._since
        if self._failures >= _MOST_FAILURES and now - self._since >= self._patience_seconds:
            raise StoppedError(
                f"{self._failures} requests in a row failed, over "
                f"{now - self._since:.0f} s; the last one: {failure}"
            )


def _level_of(cell: Cell) -> tuple[int | None, float | None]:
    return cell.concurrency, cell.requests_per_second


def shown_level(concurrency: int | None, rate: float | None) -> str:
    """Returns a level in words."""
    if concurrency is not None:
        return f"concurrency {concurrency}"
    return f"{rate:g} requests/s"


def shown_cell(cell: Cell) -> str:
    """Returns the levels of a cell in words."""
    return ", ".join(f"{name.replace('_', ' ')} {each}" for name, each in _shown_levels(cell))


def _shown_levels(cell: Cell) -> Iterator[tuple[str, str]]:
    for name, value in cell.levels().items():
        yield name, f"{value:g}" if isinstance(value, float) else str(value)


def _described(row: TrialRow) -> str:
    found = row.figures
    parts = [f"{shown_cell(row.cell)}:"]
    if "requests_per_second" in found:
        parts.append(
            f"{found['requests_per_second']:.3g} requests/s, "
            f"p50 {found['p50_milliseconds']:.3g} ms, p99 {found['p99_milliseconds']:.3g} ms"
        )
    else:
        parts.append("no answer")
    if row.failures:
        parts.append(f"({', '.join(f'{count} x {kind}' for kind, count in row.failures.items())})")
    if row.client_limit is not None:
        parts.append(f"(no result: {row.client_limit})")
    if row.is_cut:
        parts.append("(cut short)")
    return " ".join(parts)
