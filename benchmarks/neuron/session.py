"""Compares the answers, then carries out the design: one measurement after the other."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.load import LoadResult, LoadSpecification
from benchmarks.machine import describe_machine
from benchmarks.models import Model
from benchmarks.neuron.design import Cell, Design, Server, System, Workload
from benchmarks.neuron.models import ensure_model
from benchmarks.neuron.servers import Servers
from benchmarks.neuron.workloads import Answer, Request, make_requests, read_answer
from benchmarks.program import Say
from benchmarks.servers import TIMEOUT_SECONDS
from benchmarks.trials import Trial, carry_out

# Answers compared before anything is timed: each body goes to each server once.
_COMPARING_CLIENTS = 4


@dataclass(frozen=True)
class ModelSession:
    """The measurements of one model.

    Args:
        model: the measured model.
        tokens: tokens of each request, by workload.
        trials: in the order in which they ran.
        answers: number of answers compared with the first server's, timed answers included.
    """

    model: Model
    tokens: Mapping[Workload, tuple[int, ...]]
    trials: tuple[Trial[Cell, LoadResult], ...]
    answers: int


class _Measurement:
    """The servers and requests of one model, and the first answers."""

    def __init__(
        self, design: Design, model: Model, directory: Path, servers: Servers, say: Say
    ) -> None:
        self._design, self._model = design, model
        self._servers, self._say = servers, say
        self._requests = {
            workload: make_requests(workload, directory / "tokenizer.json", design.seed)
            for workload in design.workloads
        }
        self._expected: dict[tuple[Workload, int], Answer] = {}
        self._compared = 0

    def run(self) -> ModelSession:
        for workload in self._design.workloads:
            for server in workload.servers:
                self._compare(workload, server)
        trials = carry_out(
            self._design.rounds(self._model),
            self._measure,
            lambda cell, load: f"{load.requests_per_second:7.2f} sentences/s  {cell.key}",
            self._say,
        )
        tokens = {
            workload: tuple(request.tokens for request in requests)
            for workload, requests in self._requests.items()
        }
        return ModelSession(self._model, tokens, trials, self._compared)

    def _compare(self, workload: Workload, server: Server) -> None:
        """Sends a server every request of a workload once, which also warms it up."""
        clients = min(_COMPARING_CLIENTS, len(self._requests[workload]))
        cell = Cell(self._model, workload, server, clients)
        self._load(cell, requests=len(self._requests[workload]) // clients, keep_up=False)
        self._say(f"answers compared  {cell.key}")

    def _measure(self, cell: Cell) -> LoadResult:
        seconds = self._model.seconds if self._design.seconds is None else self._design.seconds
        return self._load(
            cell,
            seconds=seconds,
            warm_up_requests=0 if cell.concurrency == 1 else 1,
            # The naive server answers in the order of arrival, so later requests change nothing.
            keep_up=cell.server.system is System.SLIPWAY,
        )

    def _load(
        self,
        cell: Cell,
        *,
        keep_up: bool,
        seconds: float = 0.0,
        requests: int = 1,
        warm_up_requests: int = 0,
    ) -> LoadResult:
        sent = self._requests[cell.workload]
        load = self._servers.drive(
            cell.server,
            cell.key,
            LoadSpecification(
                bodies=tuple(request.body for request in sent),
                clients=cell.concurrency,
                warm_up_requests=warm_up_requests,
                requests=requests,
                seconds=seconds,
                keep_up=keep_up,
                timeout_seconds=TIMEOUT_SECONDS,
            ),
        )
        for index, answer, count in load.answers:
            self._check(cell, index, sent[index], answer)
            self._compared += count
        return load

    def _check(self, cell: Cell, index: int, request: Request, answer: str) -> None:
        """Compares an answer with the first answer that any server gave to the same request.

        Raises:
            BenchmarkError: they differ, so that one of the two servers did not do the same work.
        """
        found = read_answer(request, answer)
        expected = self._expected.setdefault((cell.workload, index), found)
        if not found.agrees_with(expected):
            raise BenchmarkError(
                f"{cell.key}: {answer} is another answer than the first server's, {expected}, to "
                f"{request.body}"
            )


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
        BenchmarkError: a server did not start, or two servers gave different answers.
    """
    directory = ensure_model(model, models, design.seed, say)
    cores = describe_machine((), ()).core_count
    with Servers(folder, directory, cores=cores, environ=os.environ, say=say) as servers:
        return _Measurement(design, model, directory, servers, say).run()
