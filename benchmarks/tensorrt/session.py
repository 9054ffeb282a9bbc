"""Carries out the design: one measurement after the other, never two at the same time."""

import math
import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.baselines.stack import Layout
from benchmarks.load import LoadResult, LoadSpecification
from benchmarks.models import Model
from benchmarks.program import Say
from benchmarks.report import counted
from benchmarks.servers import TIMEOUT_SECONDS, server_variables
from benchmarks.tensorrt.bare import measure_bare_loop
from benchmarks.tensorrt.calibration import Calibration, calibrate, given
from benchmarks.tensorrt.design import Cell, Design, System, Workload
from benchmarks.tensorrt.models import ensure_model
from benchmarks.tensorrt.servers import ServerKey, Servers
from benchmarks.tensorrt.workloads import generated_tokens, make_requests
from benchmarks.trials import Trial, carry_out


@dataclass(frozen=True)
class Agreement:
    """Whether all servers gave the same tokens.

    Args:
        texts: texts of all requests that more than one system answered.
        same: those texts with the same tokens in every answer of every system.
    """

    texts: int
    same: int


@dataclass(frozen=True)
class ModelSession:
    """The measurements of one model.

    Args:
        model: the measured model.
        calibration: layouts of the published stack.
        trials: in the order in which they ran.
        left_out: cells that would have taken longer than the limit, with the expected seconds.
        agreement: comparison of the answers.
    """

    model: Model
    calibration: Calibration
    trials: tuple[Trial[Cell, LoadResult], ...]
    left_out: Mapping[Cell, float]
    agreement: Agreement


class _Measurement:
    """The servers and requests of one model, and the answers."""

    def __init__(
        self, design: Design, model: Model, directory: Path, servers: Servers, say: Say
    ) -> None:
        self._design, self._model, self._directory = design, model, directory
        self._servers, self._say = servers, say
        self._requests = {
            workload: make_requests(workload, model, design.seed) for workload in design.workloads
        }
        # Tokens by request, then by system: every different answer once.
        self._tokens: dict[tuple[Workload, int], dict[System, set[tuple[tuple[int, ...], ...]]]] = (
            defaultdict(lambda: defaultdict(set))
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
        return ModelSession(self._model, calibration, trials, left_out, self._agreement())

    def _calibrate(self) -> Calibration:
        if self._design.workers is not None:
            return given(self._design.workers, self._design.cores)
        workload = self._design.workloads[0]

        def throughput(layout: Layout, clients: int) -> float:
            cell = Cell(self._model, workload, System.CACHED, clients)
            key = ServerKey(System.CACHED, layout)
            load = self._load(cell, key, seconds=self._seconds, warm_up_requests=1)
            self._say(
                f"{layout.workers} x {layout.threads} threads: "
                f"{load.requests_per_second:.2f} requests/s with {counted(clients, 'client')}"
            )
            return load.requests_per_second

        return calibrate(self._design.cores, throughput)

    def _warm_up(self, calibration: Calibration) -> dict[Cell, float]:
        """Sends every server one request of each workload.

        Returns:
            The expected seconds of a cell's answers, for the servers that answer in order.
        """
        seconds: dict[tuple[Workload, ServerKey], float] = {}
        expected: dict[Cell, float] = {}
        for cell in self._design.cells(self._model):
            if cell.system is System.BARE:
                continue
            key = calibration.key(cell.system, cell.concurrency)
            if (cell.workload, key) not in seconds:
                load = self._load(Cell(self._model, cell.workload, cell.system, 1), key, seconds=0)
                took = seconds[cell.workload, key] = load.all_latencies_seconds[0]
                self._say(f"not timed: {took:.2f} s  {cell.workload.name} {cell.system}")
            if key.layout:
                turns = math.ceil(cell.concurrency / key.layout.workers)
                expected[cell] = turns * seconds[cell.workload, key]
        return expected

    def _measure(self, cell: Cell, calibration: Calibration) -> LoadResult:
        if cell.system is System.BARE:
            return self._bare(cell)
        key = calibration.key(cell.system, cell.concurrency)
        return self._load(
            cell,
            key,
            seconds=self._seconds,
            requests=cell.workload.requests,
            warm_up_requests=0 if cell.concurrency == 1 else 1,
        )

    @property
    def _seconds(self) -> float:
        return self._model.seconds if self._design.seconds is None else self._design.seconds

    def _load(
        self,
        cell: Cell,
        key: ServerKey,
        *,
        seconds: float,
        requests: int = 1,
        warm_up_requests: int = 0,
    ) -> LoadResult:
        sent = self._requests[cell.workload]
        load = self._servers.drive(
            key,
            cell.key,
            LoadSpecification(
                bodies=tuple(request.body for request in sent),
                clients=cell.concurrency,
                warm_up_requests=warm_up_requests,
                requests=math.ceil(requests / cell.concurrency),
                seconds=seconds,
                keep_up=not cell.system.answers_in_order,
                timeout_seconds=TIMEOUT_SECONDS,
            ),
        )
        for index, answer, _ in load.answers:
            tokens = generated_tokens(sent[index], answer)
            self._tokens[cell.workload, index][cell.system].add(tokens)
        return load

    def _bare(self, cell: Cell) -> LoadResult:
        load, tokens = measure_bare_loop(
            self._directory,
            self._requests[cell.workload][: cell.concurrency],
            threads=self._design.cores,
            seconds=self._seconds,
            variables=server_variables(os.environ),
        )
        for index, texts in enumerate(tokens):
            self._tokens[cell.workload, index][cell.system].add(texts)
        return load

    def _agreement(self) -> Agreement:
        texts = same = 0
        for by_system in self._tokens.values():
            if len(by_system) < 2:
                continue
            answers = [answer for found in by_system.values() for answer in found]
            for variants in zip(*answers, strict=True):
                texts += 1
                same += len(set(variants)) == 1
        return Agreement(texts, same)


def measure_model(
    design: Design, model: Model, folder: Path, *, models: Path, say: Say
) -> ModelSession:
    """Measures everything with one model.

    Args:
        design: the plan of the run.
        model: the model to measure.
        folder: an empty folder, for logs and sockets.
        models: folder of the model directories, which are kept.
        say: called with lines of progress.

    Raises:
        BenchmarkError: a server did not start, or an answer does not fit its request.
    """
    directory = ensure_model(model, models, design.seed, say)
    with Servers(
        folder,
        directory,
        max_batch_size=design.max_batch_size,
        threads=design.cores,
        environ=os.environ,
        say=say,
    ) as servers:
        return _Measurement(design, model, directory, servers, say).run()
