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
    SLIPWAY = "slipway"
    NAIVE = "torchscript"


@dataclass(frozen=True)
class Server:
    """A server, whose workers share the cores out; each computes a batch at a time."""

    system: System
    workers: int
    batch_size: int = 1

    def __str__(self) -> str:
        return f"{self.system}-batch-{self.batch_size}-workers-{self.workers}"


@dataclass(frozen=True)
class Bert(Model):
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
    """The questions of a measurement, and the servers and clients that are measured under it.

    Contexts may be filled up to the naive server's length.
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
    model: Model
    workload: Workload
    server: Server
    concurrency: int

    @property
    def key(self) -> str:
        return f"{self.model.name} {self.workload.name} {self.server} x{self.concurrency}"

    @property
    def baseline(self) -> "Cell":
        return replace(self, server=Server(System.NAIVE, self.server.workers))


@dataclass(frozen=True)
class Design:
    models: tuple[Model, ...] = (BERT_BASE, SAMPLE)
    workloads: tuple[Workload, ...] = (MIXED, FULL)
    trials: int = 6
    stated_trials: int = 1
    seconds: float | None = None
    seed: int = 1
    is_quick: bool = False

    def cells(self, model: Model) -> list[Cell]:
        return [
            Cell(model, workload, server, concurrency)
            for workload in self.workloads
            for concurrency in workload.concurrencies
            for server in workload.servers
        ]

    def goals(self, model: Model) -> list[Cell]:
        return [
            cell
            for cell in self.cells(model)
            if cell.workload.has_goals
            and cell.concurrency == GOAL_CLIENTS
            and cell.server.system is System.SLIPWAY
        ]

    def rounds(self, model: Model) -> list[list[Cell]]:
        def trials(cell: Cell) -> int:
            return self.trials if cell.concurrency == GOAL_CLIENTS else self.stated_trials

        return rounds_of(self.cells(model), trials, f"{self.seed} {model.name}")


def quick(design: Design) -> Design:
    return replace(
        design, models=(BERT_SMALL, SAMPLE), trials=2, stated_trials=1, seconds=0.2, is_quick=True
    )
