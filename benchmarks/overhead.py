"""The server's own work for a request: a model that computes nothing, beside an echo on uvicorn.

Medians of the same program differ from process to process, by more than a server adds. Each program
is therefore started several times, in turn, and a start counts as one trial.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Any

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.estimates import goal, pooled_latencies
from benchmarks.load import LoadSpecification, drive_from_own_process
from benchmarks.processes import answers_ping, kill_group, start_group
from benchmarks.program import ROOT, Say
from benchmarks.report import MILLISECONDS, Document, items, milliseconds
from benchmarks.servers import server_variables
from benchmarks.trials import Trial, carry_out, results_of, shuffled
from slipway.benchmarking.estimates import estimate_of_median, ratio_of_medians

CONNECTIONS = 64
LONGEST_P50_MILLISECONDS = 1.2  # goal: the p50 of a lone request
MOST_TIMES_THE_ECHO = 1.5
"""Goal: processor time of a request with `CONNECTIONS`, as a multiple of the echo's."""

_BODIES = ('{"inputs": ["some text"]}',)
_LONE_WARM_UP_REQUESTS = 200
_WARM_UP_REQUESTS = 5


class Program(StrEnum):
    SLIPWAY = "slipway"
    ECHO = "echo"


@dataclass(frozen=True)
class Cost:
    """The cost of a request in one life of a program."""

    p50_seconds: float  # of one client's requests
    processor_seconds: float  # the server's, with `CONNECTIONS`


Costs = tuple[Trial[Program, Cost], ...]


class StubServer:
    """A running program, which has pipes for standard input and output."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.port = int(self._read())

    def is_ready(self) -> bool:
        return answers_ping(self.port)

    def processor_seconds(self) -> float:
        assert self._process.stdin is not None  # noqa: S101  # a pipe
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._read())

    def _read(self) -> str:
        assert self._process.stdout is not None  # noqa: S101  # a pipe
        line: str = self._process.stdout.readline()
        if not line:
            raise BenchmarkError("the server that computes nothing ended")
        return line


@contextmanager
def stub_server(program: Program, variables: Mapping[str, str]) -> Iterator[StubServer]:
    """Starts a program; stops it at the end of the context."""
    process = start_group(
        (sys.executable, "-m", "benchmarks.stub_server", program),
        ROOT,
        variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            server = StubServer(process)
            while not server.is_ready():
                server.processor_seconds()  # fails once the process has ended
            yield server
        finally:
            kill_group(process)


def measure_overhead(starts: int, seconds: float, *, seed: int, say: Say) -> Costs:
    def live(program: Program) -> Cost:
        with stub_server(program, server_variables(os.environ)) as server:
            lone = drive_from_own_process(
                server.port,
                LoadSpecification(
                    _BODIES, 1, warm_up_requests=_LONE_WARM_UP_REQUESTS, seconds=seconds
                ),
            )
            before = server.processor_seconds()
            many = drive_from_own_process(
                server.port,
                LoadSpecification(
                    _BODIES, CONNECTIONS, warm_up_requests=_WARM_UP_REQUESTS, seconds=seconds
                ),
            )
            used = server.processor_seconds() - before
            requests = sum(count for _, _, count in many.answers)
        return Cost(pooled_latencies([lone]).p50, used / requests)

    return carry_out(shuffled([tuple(Program)] * starts, f"{seed} overhead"), live, _described, say)


def _described(program: Program, cost: Cost) -> str:
    return (
        f"p50 {cost.p50_seconds * MILLISECONDS:.2f} ms, "
        f"{cost.processor_seconds * MILLISECONDS:.3f} ms of processor time a request  {program}"
    )


# Any: JSON, as below.
def overhead_goals(costs: Costs, generator: np.random.Generator) -> Iterator[dict[str, Any]]:
    slipway, echo = (results_of(costs, program) for program in Program)
    p50 = [each.p50_seconds * MILLISECONDS for each in slipway]
    yield goal(
        "The server over a stub model: p50 of a lone request",
        estimate_of_median(p50, generator),
        most=LONGEST_P50_MILLISECONDS,
        unit="ms",
    )
    used, echoed = ([each.processor_seconds for each in lives] for lives in (slipway, echo))
    yield goal(
        f"The server over a stub model: processor time of a request with {CONNECTIONS} "
        "connections, against uvicorn's echo",
        ratio_of_medians(used, echoed, generator),
        most=MOST_TIMES_THE_ECHO,
    )


def overhead_as_json(costs: Costs) -> dict[str, Any]:
    """Returns every life; times are in milliseconds."""
    return {
        "connections": CONNECTIONS,
        "lives": [
            {
                "program": trial.cell,
                "round": trial.round,
                "p50_milliseconds": milliseconds(trial.result.p50_seconds),
                "processor_milliseconds": milliseconds(trial.result.processor_seconds),
            }
            for trial in costs
        ],
    }


def overhead_as_list(overhead: Document) -> str:
    def of(program: Program, figure: str) -> float:
        return float(
            median(life[figure] for life in overhead["lives"] if life["program"] == program)
        )

    return items(
        *(
            f"{label}: p50 {of(program, 'p50_milliseconds'):.2f} ms with 1 client, "
            f"{of(program, 'processor_milliseconds'):.3f} ms of processor time a request with "
            f"{overhead['connections']}"
            for program, label in (
                (Program.SLIPWAY, "Slipway's server"),
                (Program.ECHO, "uvicorn's echo, with h11"),
            )
        )
    )
