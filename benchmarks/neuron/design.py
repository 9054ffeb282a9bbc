"""Defines the measurements, their goals and their order."""

from dataclasses import dataclass, replace
from enum import StrEnum

from benchmarks.models import Model
from benchmarks.trials import rounds_of

SEQUENCE_LENGTHS = (32, 64, 128)
"""Slipway's buckets, in tokens; the naive server pads to the last one."""

GOAL_CLIENTS = 16
MOST_P95_RATIO = 1.0


class System(StrEnum):
    """A kind of server."""

    SLIPWAY = "slipway"
    NAIVE = "torchscript"


@dataclass(frozen=True)
class Server:
    """One server of a model.

    Args:
        system: the kind of server.
        workers: processes that compute; the cores are shared out among them.
        batch_size: most sequences that a worker computes at a time.
    """

    system: System
    workers: int
    batch_size: int = 1

    @property
    def label(self) -> str:
        """Returns its name for readers, without the workers."""
        if self.system is System.NAIVE:
            return "one-by-one TorchScript"
        return f"Slipway, batch {self.batch_size}"

    def __str__(self) -> str:
        return f"{self.system}-batch-{self.batch_size}-workers-{self.workers}"


@dataclass(frozen=True)
class Bert(Model):
    """A BERT.

    Args:
        feed_forward: width between the two layers that follow attention.
    """

    feed_forward: int


BERT_BASE = Bert("bert-base", "BERT-base", 12, 768, 12, 30522, None, 4.0, feed_forward=3072)
BERT_SMALL = Bert("bert-small", "a small random BERT", 2, 64, 2, 1024, None, 0.3, feed_forward=128)
SAMPLE = Bert(
    "bert-qa", "the sample", 3, 128, 4, 536, "samples/bert-qa/model", 2.0, feed_forward=256
)


def least_throughput_ratio(model: Model, batch_size: int) -> float:
    """Returns the goal for sentences per second, as a multiple of the naive server's.

    The sample computes so little that a request's cost is mostly the server's. Alone in its batch,
    a sentence pays for all of it.
    """
    return 1.6 if model.sample and batch_size == 1 else 2.0


@dataclass(frozen=True)
class Workload:
    """The questions of a measurement.

    Args:
        name: key in the results.
        title: shown to readers.
        is_filled: whether contexts are filled up to the naive server's length.
        workers: workers of the servers that are measured under it.
        batch_sizes: batch sizes of Slipway's servers.
        concurrencies: numbers of clients.
        has_goals: whether the goals are about it.
    """

    name: str
    title: str
    is_filled: bool
    workers: tuple[int, ...]
    batch_sizes: tuple[int, ...]
    concurrencies: tuple[int, ...]
    has_goals: bool

    @property
    def servers(self) -> tuple[Server, ...]:
        """Returns the servers in the order of the report."""
        return tuple(
            server
            for workers in self.workers
            for server in (
                *(Server(System.SLIPWAY, workers, size) for size in self.batch_sizes),
                Server(System.NAIVE, workers),
            )
        )


MIXED = Workload(
    "mixed",
    "the sample's questions as they come",
    False,
    (1, 2),
    (1, 6),
    (1, 4, GOAL_CLIENTS),
    True,
)
FULL = Workload(
    "full",
    f"the same questions, with contexts filled up to {SEQUENCE_LENGTHS[-1]} tokens",
    True,
    (1, 2),
    (1, 6),
    (GOAL_CLIENTS,),
    False,
)
"""No server pads these, so a ratio owes nothing to the padding that buckets save."""


@dataclass(frozen=True)
class Cell:
    """The model, workload, server and number of clients of one measurement."""

    model: Model
    workload: Workload
    server: Server
    concurrency: int

    @property
    def key(self) -> str:
        """Returns its name in the progress."""
        return f"{self.model.name} {self.workload.name} {self.server} x{self.concurrency}"


@dataclass(frozen=True)
class Goal:
    """The goal of one of Slipway's servers: more sentences, and a p95 that is no worse.

    Args:
        cell: the measurement of Slipway's server.
        baseline: the naive server with as many workers and clients.
    """

    cell: Cell
    baseline: Cell


@dataclass(frozen=True)
class Design:
    """The whole plan of a run; the same values give the same order and the same requests.

    Args:
        models: measured one after the other.
        workloads: measured in turn, in one random order.
        trials: measurements of each cell with the goals' number of clients.
        stated_trials: measurements of every other cell.
        seconds: time that each client is measured for; None takes the model's.
        seed: seed of the order, the questions and the random weights.
        is_quick: whether the run only tests the program, so that its figures mean nothing.
    """

    models: tuple[Model, ...]
    workloads: tuple[Workload, ...]
    trials: int
    stated_trials: int
    seconds: float | None
    seed: int
    is_quick: bool = False

    def goals(self, model: Model) -> list[Goal]:
        """Returns the goals of a model, in the order of the report."""
        return [
            Goal(
                Cell(model, workload, server, GOAL_CLIENTS),
                Cell(model, workload, Server(System.NAIVE, server.workers), GOAL_CLIENTS),
            )
            for workload in self.workloads
            if workload.has_goals and GOAL_CLIENTS in workload.concurrencies
            for server in workload.servers
            if server.system is System.SLIPWAY
        ]

    def cells(self, model: Model) -> list[Cell]:
        """Returns the cells of a model, in the order of the report."""
        return [
            Cell(model, workload, server, concurrency)
            for workload in self.workloads
            for concurrency in workload.concurrencies
            for server in workload.servers
        ]

    def trials_of(self, cell: Cell) -> int:
        """Returns how often a cell is measured."""
        return self.trials if cell.concurrency == GOAL_CLIENTS else self.stated_trials

    def rounds(self, model: Model) -> list[list[Cell]]:
        """Returns the cells of a model in the order in which they run."""
        return rounds_of(self.cells(model), self.trials_of, f"{self.seed} {model.name}")


def full_design(*, trials: int, stated_trials: int, seed: int) -> Design:
    """Returns the design of `make bench-neuron`.

    Args:
        trials: measurements of each cell with the goals' number of clients.
        stated_trials: measurements of every other cell, at most `trials`.
        seed: seed of the order, the questions and the random weights.
    """
    return Design(
        models=(BERT_BASE, SAMPLE),
        workloads=(MIXED, FULL),
        trials=trials,
        stated_trials=min(stated_trials, trials),
        seconds=None,
        seed=seed,
    )


def quick(design: Design) -> Design:
    """Returns a design that goes through everything in little time; its figures mean nothing."""
    return replace(
        design, models=(BERT_SMALL, SAMPLE), trials=2, stated_trials=1, seconds=0.2, is_quick=True
    )
