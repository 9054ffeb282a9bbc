"""Starts the servers, and measures one cell after the other, never two at the same time."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.baselines.stack import Layout, text_generation
from benchmarks.load import LoadResult, LoadSpecification
from benchmarks.models import Model
from benchmarks.program import Say
from benchmarks.report import counted
from benchmarks.servers import (
    TIMEOUT_SECONDS,
    RunningServer,
    ServerPool,
    shared_settings,
    start_container,
    start_published,
)
from benchmarks.tensorrt.bare import measure_bare_loop
from benchmarks.tensorrt.design import Cell, Design, System, Workload
from benchmarks.tensorrt.models import ensure_model
from benchmarks.tensorrt.workloads import generated_tokens, make_requests
from benchmarks.trials import Trial, carry_out

_PROGRAMS = {
    System.SLIPWAY: ("-m", "containers.tensorrt", "serve"),
    System.STATIC: ("-m", "benchmarks.baselines.static_batching"),
}
_Tokens = tuple[tuple[int, ...], ...]
CONCURRENCY = 4
"""Clients that the candidates are measured with: the most that the published case had."""


@dataclass(frozen=True)
class Server:
    system: System
    layout: Layout | None = None

    def __str__(self) -> str:
        if self.layout is None:
            return self.system.label
        return f"{self.system.label} ({self.layout.workers} x {self.layout.threads} threads)"


@dataclass(frozen=True)
class Measured:
    """Requests per second of a layout with a cache: of one client, and of `CONCURRENCY`."""

    layout: Layout
    alone: float
    together: float


@dataclass(frozen=True)
class Calibration:
    """The layouts that are measured, and the candidates, unless the user chose."""

    alone: Layout  # for one client
    together: Layout  # for several
    measured: tuple[Measured, ...] = ()

    def server(self, system: System, concurrency: int) -> Server:
        if not system.answers_in_order:
            return Server(system)
        return Server(system, self.alone if concurrency == 1 else self.together)


def layouts(core_count: int) -> list[Layout]:
    """Returns the layouts that use all cores: 1, 2, 4, ... workers with equal threads."""
    numbers = [2**power for power in range(core_count.bit_length()) if core_count % 2**power == 0]
    if core_count not in numbers:
        numbers.append(core_count)
    return [Layout(number, core_count // number) for number in numbers]


def given(workers: int, core_count: int) -> Calibration:
    layout = Layout(workers, max(1, core_count // workers))
    return Calibration(layout, layout)


def calibrate(core_count: int, throughput: Callable[[Layout, int], float]) -> Calibration:
    measured = tuple(
        Measured(layout, throughput(layout, 1), throughput(layout, CONCURRENCY))
        for layout in layouts(core_count)
    )
    return Calibration(
        alone=max(measured, key=lambda each: each.alone).layout,
        together=max(measured, key=lambda each: each.together).layout,
        measured=measured,
    )


@dataclass(frozen=True)
class Agreement:
    """How many texts got the same tokens in every answer of every system."""

    texts: int  # of all requests that more than one system answered
    same: int


@dataclass(frozen=True)
class ModelSession:
    """The measurements of one model; cells that were left out have their expected seconds."""

    model: Model
    calibration: Calibration
    trials: tuple[Trial[Cell, LoadResult], ...]
    left_out: Mapping[Cell, float]
    agreement: Agreement


def start_server(
    server: Server, design: Design, model_directory: Path, folder: Path
) -> RunningServer:
    if server.layout is None:
        settings = {
            **shared_settings(model_directory),
            "SLIPWAY_MAX_BATCH_SIZE": str(design.max_batch_size),
            "SLIPWAY_INTRA_OP_THREADS": str(design.cores),
        }
        return start_container(_PROGRAMS[server.system], folder / f"{server.system}.log", settings)
    application = text_generation(model_directory, use_cache=server.system is System.CACHED)
    own = folder / f"{server.system}-{server.layout.workers}"
    return start_published(own, application, server.layout)


class _Measurement:
    def __init__(
        self,
        design: Design,
        model: Model,
        directory: Path,
        servers: ServerPool[Server],
        say: Say,
    ) -> None:
        self._design, self._model, self._directory = design, model, directory
        self._servers, self._say = servers, say
        self._seconds = model.seconds if design.seconds is None else design.seconds
        self._requests = {
            workload: make_requests(workload, model, design.seed) for workload in design.workloads
        }
        # Tokens by request, then by system: every different answer once.
        self._tokens: dict[tuple[Workload, int], dict[System, set[_Tokens]]] = defaultdict(
            lambda: defaultdict(set)
        )

    def run(self) -> ModelSession:
        calibration = self._calibrate()
        left_out = {
            cell: seconds
            for cell, seconds in self._warm_up(calibration).items()
            if seconds > self._design.longest_seconds
        }
        rounds = self._design.rounds(self._model)
        trials = carry_out(
            [[cell for cell in cells if cell not in left_out] for cells in rounds],
            lambda cell: self._measure(cell, calibration),
            lambda cell, load: f"{load.requests_per_second:7.2f} requests/s  {cell.key}",
            self._say,
        )
        agreement = agreement_of(self._tokens.values())
        return ModelSession(self._model, calibration, trials, left_out, agreement)

    def _calibrate(self) -> Calibration:
        if self._design.workers is not None:
            return given(self._design.workers, self._design.cores)

        def throughput(layout: Layout, clients: int) -> float:
            cell = Cell(self._model, self._design.workloads[0], System.CACHED, clients)
            server = Server(System.CACHED, layout)
            load = self._load(cell, server, seconds=self._seconds, warm_up_requests=1)
            self._say(
                f"{layout.workers} x {layout.threads} threads: "
                f"{load.requests_per_second:.2f} requests/s with {counted(clients, 'client')}"
            )
            return load.requests_per_second

        return calibrate(self._design.cores, throughput)

    def _warm_up(self, calibration: Calibration) -> dict[Cell, float]:
        """Sends every server one request of each workload.

        Returns the expected seconds of a cell's answers, for the servers that answer in order.
        """
        seconds: dict[tuple[Workload, Server], float] = {}
        expected: dict[Cell, float] = {}
        for cell in self._design.cells(self._model):
            if cell.system is System.BARE:
                continue
            server = calibration.server(cell.system, cell.concurrency)
            if (cell.workload, server) not in seconds:
                alone = Cell(self._model, cell.workload, cell.system, 1)
                took = self._load(alone, server, seconds=0).all_latencies_seconds[0]
                seconds[cell.workload, server] = took
                self._say(f"not timed: {took:.2f} s  {cell.workload.name} {cell.system}")
            if server.layout:
                turns = math.ceil(cell.concurrency / server.layout.workers)
                expected[cell] = turns * seconds[cell.workload, server]
        return expected

    def _measure(self, cell: Cell, calibration: Calibration) -> LoadResult:
        if cell.system is System.BARE:
            return self._bare(cell)
        return self._load(
            cell,
            calibration.server(cell.system, cell.concurrency),
            seconds=self._seconds,
            requests=cell.workload.requests,
            warm_up_requests=0 if cell.concurrency == 1 else 1,
        )

    def _load(
        self,
        cell: Cell,
        server: Server,
        *,
        seconds: float,
        requests: int = 1,
        warm_up_requests: int = 0,
    ) -> LoadResult:
        sent = self._requests[cell.workload]
        load = LoadSpecification(
            bodies=tuple(request.body for request in sent),
            clients=cell.concurrency,
            warm_up_requests=warm_up_requests,
            requests=math.ceil(requests / cell.concurrency),
            seconds=seconds,
            keep_up=not cell.system.answers_in_order,
            timeout_seconds=TIMEOUT_SECONDS,
        )
        result = self._servers.drive(server, cell.key, load)
        for index, answer, _ in result.answers:
            tokens = generated_tokens(sent[index], answer)
            self._tokens[cell.workload, index][cell.system].add(tokens)
        return result

    def _bare(self, cell: Cell) -> LoadResult:
        load, tokens = measure_bare_loop(
            self._directory,
            self._requests[cell.workload][: cell.concurrency],
            threads=self._design.cores,
            seconds=self._seconds,
        )
        for index, texts in enumerate(tokens):
            self._tokens[cell.workload, index][cell.system].add(texts)
        return load


def agreement_of(requests: Iterable[Mapping[System, set[_Tokens]]]) -> Agreement:
    """Compares the tokens of each request's texts, which have every system's different answers."""
    texts = same = 0
    for by_system in requests:
        if len(by_system) < 2:
            continue
        answers = [answer for found in by_system.values() for answer in found]
        for variants in zip(*answers, strict=True):
            texts += 1
            same += len(set(variants)) == 1
    return Agreement(texts, same)


def measure_model(
    design: Design, model: Model, parent: Path, *, models: Path, say: Say
) -> ModelSession:
    """Measures everything with one model, whose servers' logs and sockets are below `parent`."""
    folder = parent / model.name
    folder.mkdir()
    directory = ensure_model(model, models, design.seed, say)

    def start(server: Server) -> RunningServer:
        return start_server(server, design, directory, folder)

    with ServerPool[Server](start, say) as servers:
        return _Measurement(design, model, directory, servers, say).run()
