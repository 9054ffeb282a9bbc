"""Compares the answers, then carries out the design: one measurement after the other."""

import os
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.load import LoadResult, LoadSpecification
from benchmarks.program import Say
from benchmarks.servers import TIMEOUT_SECONDS
from benchmarks.trials import Trial, carry_out
from benchmarks.triton.design import SERVERS, Cell, Design, Server, System
from benchmarks.triton.queries import QUERIES, body, read_answer
from benchmarks.triton.servers import Servers

# The first to answer, so that every text is compared with the text of transformers.
_REFERENCE = Server(System.GENERATE, 1)
# Answers compared before anything is timed: each query goes to each server once.
_COMPARING_CLIENTS = 4


@dataclass(frozen=True)
class Session:
    """The measurements.

    Args:
        trials: in the order in which they ran.
        answers: number of answers compared with the text of `generate`, timed answers included.
    """

    trials: tuple[Trial[Cell, LoadResult], ...]
    answers: int


class _Measurement:
    """The servers, and the text that belongs to each query."""

    def __init__(self, design: Design, servers: Servers, say: Say) -> None:
        self._design, self._servers, self._say = design, servers, say
        self._expected: dict[int, str] = {}
        self._compared = 0

    def run(self) -> Session:
        for server in sorted(SERVERS, key=lambda each: each != _REFERENCE):
            cell = Cell(server, _COMPARING_CLIENTS)
            self._load(cell, requests=len(QUERIES) // _COMPARING_CLIENTS, keep_up=False)
            self._say(f"answers compared  {server}")
        trials = carry_out(
            self._design.rounds(),
            lambda cell: self._load(cell, seconds=self._design.seconds, warm_up_requests=2),
            lambda cell, load: f"{load.requests_per_second:7.1f} requests/s  {cell}",
            self._say,
        )
        return Session(trials, self._compared)

    def _load(
        self,
        cell: Cell,
        *,
        requests: int = 1,
        seconds: float = 0.0,
        warm_up_requests: int = 0,
        keep_up: bool = True,
    ) -> LoadResult:
        load = self._servers.drive(
            cell.server,
            str(cell),
            LoadSpecification(
                bodies=tuple(map(body, QUERIES)),
                clients=cell.clients,
                warm_up_requests=warm_up_requests,
                requests=requests,
                seconds=seconds,
                keep_up=keep_up,
                timeout_seconds=TIMEOUT_SECONDS,
            ),
        )
        for index, answer, count in load.answers:
            text = read_answer(answer)
            expected = self._expected.setdefault(index, text)
            if text != expected:
                raise BenchmarkError(
                    f"{cell} answers {text!r} to {QUERIES[index]!r}, and {_REFERENCE} answers "
                    f"{expected!r}: they do not compute the same model"
                )
            self._compared += count
        return load


def measure(design: Design, triton: Path, folder: Path, say: Say) -> Session:
    """Carries out the design.

    Args:
        design: the plan of the run.
        triton: program of the server.
        folder: an empty folder.
        say: called with lines of progress.

    Raises:
        BenchmarkError: a server did not start or failed, or two servers gave different answers.
    """
    with Servers(folder, os.environ, say, triton=triton) as servers:
        return _Measurement(design, servers, say).run()
