"""Carries a design out: self-test, then every cell in rounds of a random order."""

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from slipway.benchmarking.answers import Observed, is_expired, observe
from slipway.benchmarking.arrivals import constant_arrivals, poisson_arrivals, read_trace
from slipway.benchmarking.connections import Connection, LoadError
from slipway.benchmarking.design import LOADS, Cell, LoadedDesign, shown
from slipway.benchmarking.endpoint import Endpoint, Instances, cost_per_hour, look_at_instances
from slipway.benchmarking.estimates import rounded
from slipway.benchmarking.figures import Figures, trial_figures
from slipway.benchmarking.load import ClosedLoad, Load, OpenLoad, Sample, Watch, run_load
from slipway.benchmarking.requests import make_bodies
from slipway.benchmarking.self_test import Level, driver_limit, test_level
from slipway.benchmarking.signed import signed_requests
from slipway.codes.code import Code
from slipway.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_DEFAULT_CONNECTIONS = 256
_TIMEOUT_SECONDS = 70.0  # SageMaker's 60, and the way there and back
# So many failures in a row, over so long a time, end the run.
_MOST_FAILURES = 50
_PATIENCE_SECONDS = 10.0


@dataclass(frozen=True)
class Trial:
    """One trial, as the summary has it, with its place in the run, from 1.

    `failures` counts each kind, the most frequent first. `cost` says where the price is from, or
    why there is none. `client_limit` says why it measured the client; None if it did not.
    """

    # Any: texts and numbers.
    levels: Mapping[str, Any]
    round: int
    order: int
    began_at: str
    figures: Figures
    failures: Mapping[str, int]
    instances: str
    usd_per_hour: float | None
    cost: str
    client_limit: str | None
    is_cut: bool

    @property
    def counts(self) -> bool:
        """Returns whether it is a result: whole, and of the endpoint."""
        return not self.is_cut and self.client_limit is None

    def __str__(self) -> str:
        found = self.figures
        text = f"{shown(self.levels)}: no answer"
        if "requests_per_second" in found:
            text = (
                f"{shown(self.levels)}: {found['requests_per_second']:.3g} requests/s, "
                f"p50 {found['p50_milliseconds']:.3g} ms, p99 {found['p99_milliseconds']:.3g} ms"
            )
        if self.failures:
            text += f" ({', '.join(f'{count} x {kind}' for kind, count in self.failures.items())})"
        if self.client_limit is not None:
            text += f" (no result: {self.client_limit})"
        return f"{text} (cut short)" if self.is_cut else text


@dataclass
class Run:
    """One run of a design; the requests of every cell are made before anything is sent.

    `tokenizer_note` says where the tokenizer is, or why there is none. `patience_seconds` is how
    long nothing but failures may come. `levels` has what the self-test found. `refused` has the
    levels that the client cannot measure, and why. `stopped` says why the run ended early, and
    `problem` is the same as a report, where the user can put it right.

    Raises `UserError` if the texts or the trace cannot be read.
    """

    endpoint: Endpoint
    loaded: LoadedDesign
    tokenizer: "Tokenizer | None"
    tokenizer_note: str
    say: Callable[[str], None]
    write: Callable[[Trial, Sequence[Observed]], None]
    test: Callable[[int | None, float | None, bytes], Level] = test_level
    patience_seconds: float = _PATIENCE_SECONDS
    levels: list[Level] = field(default_factory=list)
    refused: dict[tuple[int | None, float | None], str] = field(default_factory=dict)
    trials: list[Trial] = field(default_factory=list)
    stopped: str | None = None
    problem: UserError | None = None

    def __post_init__(self) -> None:
        self.bodies = {
            cell: make_bodies(self.loaded, cell, self.tokenizer, self.tokenizer_note)
            for cell in self.loaded.cells()
        }
        design, root = self.loaded.design, self.loaded.root
        self._trace = read_trace(self.loaded.file(design.trace), root) if design.trace else None
        self._sagemaker = self.endpoint.access.client("sagemaker")
        self._signed = {
            variant: signed_requests(
                self.endpoint.access,
                self.endpoint.name,
                {
                    "Content-Type": design.request.content_type,
                    "X-Amzn-SageMaker-Target-Variant": variant,
                    "X-Amzn-SageMaker-Inference-Component": self.endpoint.component,
                },
                stream=design.request.stream,
            )
            for variant in dict.fromkeys(map(self.variant, self.bodies))
        }

    def check_variants(self) -> None:
        """Raises `UserError` if the endpoint lacks a variant that the design asks by name."""
        asked = list(filter(None, self._signed))
        known = [each.variant for each in self._instances()] if asked else []
        missing = [name for name in asked if name not in known]
        if missing and known:
            raise UserError.of(
                Code.BENCH_INPUT,
                f"{self.endpoint.name} has no variant {' and no variant '.join(missing)}",
                f"Name variants of the endpoint in `factors`: {', '.join(known)}.",
            )

    def variant(self, cell: Cell) -> str | None:
        engines = self.loaded.design.factors.engine
        return engines[cell.engine] if engines and cell.engine else cell.variant

    def carry_out(self) -> None:
        """Tests the client, then measures every cell.

        Ctrl-C, expired credentials and an endpoint that answers no more end it early. What was
        measured stays.
        """
        try:
            self._test_levels()
            cells = [cell for cell in self.bodies if cell.load not in self.refused]
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
        except LoadError as error:
            self.stopped = str(error)

    def _test_levels(self) -> None:
        body = max((bodies[0] for bodies in self.bodies.values()), key=len)
        for level in dict.fromkeys(cell.load for cell in self.bodies):
            if level == (None, None):
                continue  # the requests of a trace are judged as they are sent
            found = self.test(*level, body)
            self.levels.append(found)
            if found.reason is not None:
                self.refused[level] = found.reason
                name = shown(dict(zip(LOADS, level, strict=True)))
                self.say(f"self-test: {name} is not measured: {found.reason}")

    def _measure(self, cell: Cell, number: int, order: int, total: int) -> None:
        variant = self.variant(cell)
        requests = self._signed[variant]

        def request(body: bytes) -> bytes:
            try:
                return requests.of(body)
            # botocore's providers run the user's own programs: this can be any exception.
            except Exception as error:
                raise LoadError(f"the credentials cannot be renewed: {error}") from None

        connect = partial(Connection, requests.url, _TIMEOUT_SECONDS)
        watch = _watch(self.patience_seconds)
        load = Load(self._specification(cell, order), connect, request, watch)
        began_at = datetime.now(UTC).isoformat(timespec="seconds")
        is_cut = True
        try:
            run_load(load.run())
            is_cut = False
        finally:
            counted = [[each for each in client if each.counts] for client in load.samples]
            samples = [each for client in counted for each in client]
            if samples:
                start = min(each.intended_at for each in samples)
                key = self.loaded.design.request.tokens_key
                observed = [observe(each, start, key, self.tokenizer) for each in samples]
                failures = Counter(each.kind for each in observed if each.failure is not None)
                instances = self._instances()
                usd, cost = cost_per_hour(instances, variant, self.endpoint.environment)
                trial = Trial(
                    cell.levels(),
                    number,
                    order,
                    began_at,
                    trial_figures(observed, _measured_seconds(cell, counted), cell.batch, usd),
                    dict(failures.most_common()),
                    " and ".join(map(str, instances)),
                    None if usd is None else rounded(usd),
                    cost,
                    driver_limit(load),
                    is_cut,
                )
                self.trials.append(trial)
                self.write(trial, observed)
                self.say(f"{order}/{total}  {trial}")

    def _specification(self, cell: Cell, order: int) -> ClosedLoad | OpenLoad:
        design, bodies = self.loaded.design, self.bodies[cell]
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
        rate, end = cell.requests_per_second, warm_up + design.seconds
        if rate is None:
            arrivals = self._trace or []
        elif design.arrivals == "constant":
            arrivals = constant_arrivals(rate, end)
        else:
            arrivals = poisson_arrivals(rate, end, design.seed * 100_000 + order)
        return OpenLoad(bodies, arrivals, design.connections or _DEFAULT_CONNECTIONS, warm_up)

    def _instances(self) -> tuple[Instances, ...]:
        try:
            return look_at_instances(self._sagemaker, self.endpoint.name)
        except (BotoCoreError, ClientError):
            return ()  # there is no cost then, and the requests say what is wrong


def _measured_seconds(cell: Cell, counted: Sequence[Sequence[Sample]]) -> float:
    """Returns the time that the throughput is of: by Little's law in the closed loop."""
    known = [client for client in counted if client]
    if cell.concurrency is not None:
        spans = [max(e.ended_at for e in c) - min(e.sent_at for e in c) for c in known]
        return math.fsum(spans) / len(known)
    first = min(each.intended_at for client in known for each in client)
    return max(each.ended_at for client in known for each in client) - first


def _watch(patience_seconds: float) -> Watch:
    """Returns what ends a load whose requests do nothing but fail."""
    failures, since = 0, 0.0

    def look(sample: Sample) -> None:
        nonlocal failures, since
        failure, now = sample.failure, time.perf_counter()
        if failure is None:
            failures = 0
            return
        if is_expired(sample.reply):
            raise LoadError(f"the credentials are no longer valid: {failure}")
        failures += 1
        since = now if failures == 1 else since
        if failures >= _MOST_FAILURES and now - since >= patience_seconds:
            raise LoadError(
                f"{failures} requests in a row failed, over {now - since:.0f} s; "
                f"the last one: {failure}"
            )

    return look
