"""Defines the measurements, their goals and their order."""

from dataclasses import dataclass, replace
from enum import StrEnum

from benchmarks.program import ROOT
from benchmarks.trials import rounds_of

MODEL_DIRECTORY = ROOT / "samples" / "t5-spelling" / "model"
MAX_BATCH_SIZE = 16
"""The batch size of model_configs/t5-spelling.yaml."""
MAX_TOKENS = 32
"""Of a query and of an answer, as in that file."""
COPIES = (1, 2)
"""Copies of the model in a Triton; that file has 2."""
GOAL_CLIENTS = 16
MOST_P99_RATIO = 1.0

_CONCURRENCIES = (1, 4, 8, GOAL_CLIENTS, 32)
_SECONDS = 4.0


class System(StrEnum):
    """A way to serve the model."""

    TRITON = "triton"
    UNBATCHED = "triton-unbatched"
    GENERATE = "triton-generate"
    CORE = "serving-core"

    @property
    def label(self) -> str:
        """Returns its name for readers."""
        return _LABELS[self]


_LABELS = {
    System.TRITON: "Slipway on Triton",
    System.UNBATCHED: "without batches",
    System.GENERATE: "`generate` per request",
    System.CORE: "Slipway's serving core",
}


@dataclass(frozen=True)
class Server:
    """One server.

    Args:
        system: the way to serve.
        copies: copies of the model, each a process with one thread that computes.
    """

    system: System
    copies: int

    def __str__(self) -> str:
        return f"{self.system}-{self.copies}"


SERVERS = (
    *(Server(system, copies) for copies in COPIES for system in System if system != System.CORE),
    Server(System.CORE, 1),
)
"""In the order of the report."""


@dataclass(frozen=True)
class Goal:
    """More requests than another system with as many copies, and a p99 that is no higher.

    Args:
        baseline: the other system.
        least_throughput_ratio: least multiple of its throughput.
    """

    baseline: System
    least_throughput_ratio: float


GOALS = (Goal(System.UNBATCHED, 2.5), Goal(System.GENERATE, 5.34))
"""With `GOAL_CLIENTS`. 5.34 is the published ratio of TensorRT to PyTorch."""


@dataclass(frozen=True)
class Cell:
    """The server and the number of clients of one measurement."""

    server: Server
    clients: int

    def __str__(self) -> str:
        return f"{self.server} x{self.clients}"


@dataclass(frozen=True)
class Design:
    """The whole plan of a run; the same values give the same order.

    Args:
        concurrencies: numbers of clients.
        trials: measurements of each cell with a goal.
        stated_trials: measurements of every other cell.
        seconds: least time that each client of a measurement is measured for.
        seed: seed of the order.
        is_quick: whether the run only tests the program, so that its figures mean nothing.
    """

    concurrencies: tuple[int, ...]
    trials: int
    stated_trials: int
    seconds: float
    seed: int
    is_quick: bool = False

    @property
    def cells(self) -> list[Cell]:
        """Returns the cells in the order of the report."""
        return [Cell(server, clients) for clients in self.concurrencies for server in SERVERS]

    def trials_of(self, cell: Cell) -> int:
        """Returns how often a cell is measured."""
        is_about = cell.server.system != System.CORE and cell.clients == GOAL_CLIENTS
        return self.trials if is_about else self.stated_trials

    def rounds(self) -> list[list[Cell]]:
        """Returns the cells in the order in which they run."""
        return rounds_of(self.cells, self.trials_of, self.seed)


def full_design(*, trials: int, stated_trials: int, seed: int) -> Design:
    """Returns the design of `make bench-triton`.

    Args:
        trials: measurements of each cell with a goal.
        stated_trials: measurements of every other cell, at most `trials`.
        seed: seed of the order.
    """
    return Design(_CONCURRENCIES, trials, min(stated_trials, trials), _SECONDS, seed)


def quick(design: Design) -> Design:
    """Returns a design that goes through everything in little time; its figures mean nothing."""
    return replace(
        design,
        concurrencies=(1, GOAL_CLIENTS),
        trials=2,
        stated_trials=1,
        seconds=0.2,
        is_quick=True,
    )
