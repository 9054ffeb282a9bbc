"""Defines the measurements, their goals and their order."""

from dataclasses import dataclass, replace

from benchmarks.models import Model
from benchmarks.report import Labelled
from benchmarks.trials import rounds_of

LONGEST_SECONDS = 60.0  # SageMaker's limit for one answer of a real-time endpoint


class System(Labelled):
    SLIPWAY = "slipway", "Slipway"
    STATIC = "slipway-static", "Slipway with static batching"
    BARE = "bare-loop", "bare decode loop"
    CACHED = "pytorch-cached", "published layout, with a cache"
    UNCACHED = "pytorch-uncached", "published layout"

    @property
    def answers_in_order(self) -> bool:
        """Returns whether each worker answers one request at a time, in the order of arrival."""
        return self in (System.CACHED, System.UNCACHED)


GPT2_124M = Model("gpt2-124m", "GPT-2 124M", 12, 768, 12, 50257, None, 8.0)
GPT2_SMALL = Model("gpt2-small", "a small random GPT-2", 3, 128, 4, 2048, None, 0.5)
SAMPLE = Model(
    "gpt2-autocomplete", "the sample", 5, 160, 5, 4096, "samples/gpt2-autocomplete/model", 4.0
)


@dataclass(frozen=True)
class Workload:
    """The requests of a measurement, each with a number of new tokens of its own."""

    name: str
    texts: int  # of each request
    prompt_tokens: int  # of each text
    least_new_tokens: int  # of each text
    most_new_tokens: int
    requests: int  # least number that counts in a measurement, all clients together
    systems: tuple[System, ...]
    concurrencies: tuple[int, ...]
    is_sampled: bool = False
    top_k: int | None = None  # the likeliest tokens that are sampled from


_PUBLISHED = (System.SLIPWAY, System.BARE, System.CACHED, System.UNCACHED)
BATCH = Workload("batch", 10, 12, 30, 30, 1, _PUBLISHED, (1, 2, 3, 4, 8, 16))
"""The published case's: 10 texts, 42 tokens each, prompt included."""
_BATCHING = (System.SLIPWAY, System.STATIC, System.CACHED)
MIXED = Workload("mixed", 1, 12, 4, 40, 16, _BATCHING, (1, 8, 16, 32))
"""What continuous batching is for: some answers are ten times as long as others."""
SAMPLED = replace(
    BATCH, name="sampled", systems=(System.SLIPWAY,), concurrencies=(1,), is_sampled=True
)
"""`BATCH`, and every token is sampled from the whole vocabulary."""
TOP_K = replace(SAMPLED, name="top-k", top_k=50)


@dataclass(frozen=True)
class Cell:
    model: Model
    workload: Workload
    system: System
    concurrency: int

    @property
    def key(self) -> str:
        return f"{self.model.name} {self.workload.name} {self.system} x{self.concurrency}"

    @property
    def about(self) -> tuple[str, System, int]:
        return (self.workload.name, self.system, self.concurrency)


@dataclass(frozen=True)
class Goal:
    """The least ratio of two throughputs, each of a workload, a system and a number of clients."""

    title: str
    fast: tuple[str, System, int]
    baseline: tuple[str, System, int]
    least: float


GOALS = (
    Goal(
        "throughput against the published layout, concurrency 1",
        ("batch", System.SLIPWAY, 1),
        ("batch", System.UNCACHED, 1),
        2.9,
    ),
    Goal(
        "throughput against the published layout with a cache, concurrency 1",
        ("batch", System.SLIPWAY, 1),
        ("batch", System.CACHED, 1),
        1.3,
    ),
    Goal(
        "throughput at concurrency 8 against the bare decode loop of as many texts",
        ("batch", System.SLIPWAY, 8),
        ("batch", System.BARE, 8),
        0.95,
    ),
    Goal(
        "throughput of sampled texts against greedy texts, concurrency 1",
        ("sampled", System.SLIPWAY, 1),
        ("batch", System.SLIPWAY, 1),
        0.9,
    ),
    Goal(
        "throughput of texts sampled with `top_k` 50 against greedy texts, concurrency 1",
        ("top-k", System.SLIPWAY, 1),
        ("batch", System.SLIPWAY, 1),
        0.9,
    ),
    Goal(
        "throughput at concurrency 8 against concurrency 1, 1 text a request",
        ("mixed", System.SLIPWAY, 8),
        ("mixed", System.SLIPWAY, 1),
        3.0,
    ),
)


@dataclass(frozen=True)
class Design:
    """The whole plan of a run; the same values give the same order and the same requests.

    The models are measured one after the other, and the goals are about the first.
    """

    models: tuple[Model, ...] = (GPT2_124M, SAMPLE)
    workloads: tuple[Workload, ...] = (BATCH, MIXED, SAMPLED, TOP_K)
    trials: int = 6  # of each cell with a goal
    stated_trials: int = 1  # of every other cell
    overhead_starts: int = 8  # of the server over a model that computes nothing
    seconds: float | None = None  # of each client; None takes the model's
    cores: int = 1  # threads of each server
    # Eight requests of ten texts, so that all requests of the goal's concurrency share a batch.
    max_batch_size: int = 80
    workers: int | None = None  # of the published layout; None measures which number serves it best
    longest_seconds: float = LONGEST_SECONDS  # of the published layout's answers
    seed: int = 1
    is_quick: bool = False  # only tests the program

    def cells(self, model: Model) -> list[Cell]:
        return [
            Cell(model, workload, system, concurrency)
            for workload in self.workloads
            for concurrency in workload.concurrencies
            for system in workload.systems
            # The bare loop has as many texts as one of Slipway's batches may have.
            if system is not System.BARE or concurrency * workload.texts <= self.max_batch_size
        ]

    def rounds(self, model: Model) -> list[list[Cell]]:
        # Cells of the other models count like the first model's cells, which the goals are about.
        about = {about for goal in GOALS for about in (goal.fast, goal.baseline)}

        def trials(cell: Cell) -> int:
            return self.trials if cell.about in about else self.stated_trials

        return rounds_of(self.cells(model), trials, f"{self.seed} {model.name}")


def quick(design: Design) -> Design:
    return replace(
        design,
        models=(GPT2_SMALL, SAMPLE),
        workloads=(
            replace(BATCH, concurrencies=(1, 8)),
            replace(MIXED, concurrencies=(1, 8)),
            SAMPLED,
            TOP_K,
        ),
        trials=2,
        stated_trials=1,
        overhead_starts=2,
        seconds=0.3,
        is_quick=True,
    )
