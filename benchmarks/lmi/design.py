"""Defines the measurements and their order."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from benchmarks.trials import shuffled

T = TypeVar("T")


class Part(StrEnum):
    """A part that a run can be limited to."""

    SERVING = "serving"
    WEIGHTS = "weights"


class System(StrEnum):
    """A server of the sample model."""

    SLIPWAY = "slipway"
    SLIPWAY_SINGLE = "slipway-single"
    DJL_GRAPH = "djl-graph"
    DJL_GRAPH_SINGLE = "djl-graph-single"
    DJL_TRANSFORMERS = "djl-transformers"
    DJL_TRANSFORMERS_BATCHES = "djl-transformers-batches"

    @property
    def label(self) -> str:
        """Returns its name for readers."""
        return {
            System.SLIPWAY: "Slipway's core, shared batches",
            System.SLIPWAY_SINGLE: "Slipway's core, one at a time",
            System.DJL_GRAPH: "DJL Serving, same graph, its batches",
            System.DJL_GRAPH_SINGLE: "DJL Serving, same graph, one at a time",
            System.DJL_TRANSFORMERS: "DJL Serving, its own handler, PyTorch",
            System.DJL_TRANSFORMERS_BATCHES: "DJL Serving, its own handler, its batches",
        }[self]

    @property
    def is_djl(self) -> bool:
        """Returns whether DJL Serving is the server."""
        return self not in (System.SLIPWAY, System.SLIPWAY_SINGLE)

    @property
    def takes_batches(self) -> bool:
        """Returns whether requests that are present together are computed together."""
        return self in (System.SLIPWAY, System.DJL_GRAPH, System.DJL_TRANSFORMERS_BATCHES)

    @property
    def is_own_handler(self) -> bool:
        """Returns whether DJL Serving's own handler computes, with PyTorch."""
        return self in (System.DJL_TRANSFORMERS, System.DJL_TRANSFORMERS_BATCHES)


class Way(StrEnum):
    """A way to copy weights from S3 to the disk."""

    SYNC = "s5cmd-sync"
    COPY = "s5cmd-copy"
    STREAMED = "tar-streamed"
    STORED = "tar-stored"

    @property
    def label(self) -> str:
        """Returns its name for readers."""
        return {
            Way.SYNC: "the prefix, `s5cmd sync` as the LMI images call it",
            Way.COPY: "the prefix, `s5cmd run` of `cp` as `slipway publish` calls it",
            Way.STREAMED: "model.tar.gz, one GET, extracted while it arrives",
            Way.STORED: "model.tar.gz, one GET to a file, then extracted",
        }[self]

    @property
    def is_archive(self) -> bool:
        """Returns whether a tar.gz is fetched, not a prefix."""
        return self in (Way.STREAMED, Way.STORED)


class Content(StrEnum):
    """The kind of the synthetic weights' bytes."""

    RANDOM = "random"
    FLOAT32 = "float32"

    @property
    def label(self) -> str:
        """Returns its name for readers."""
        return {
            Content.RANDOM: "random bytes",
            Content.FLOAT32: "normal float32 values",
        }[self]


@dataclass(frozen=True)
class Transfer:
    """A way to fetch weights of one content.

    A prefix is copied unchanged, whatever its content, so it is measured with one content only.
    """

    way: Way
    content: Content

    @property
    def key(self) -> str:
        """Returns its name in the results and in the progress."""
        return f"{self.way} {self.content}"


BASELINE = Transfer(Way.SYNC, Content.RANDOM)
"""What the other ways are compared with: what the container does."""
TRANSFERS = (
    BASELINE,
    Transfer(Way.COPY, Content.RANDOM),
    *(Transfer(way, content) for way in (Way.STREAMED, Way.STORED) for content in Content),
)


@dataclass(frozen=True)
class Design:
    """The whole plan of a run; the same values give the same order and the same weights.

    Args:
        parts: parts that are measured.
        trials: starts of each server; with each start every concurrency is measured once.
        concurrencies: numbers of clients.
        seconds: least time that the clients of a measurement are measured for.
        warm_up_seconds: time of each round of requests before a server is measured.
        most_warm_ups: most such rounds; they end once a round is hardly faster than the best one.
        cores: threads that each server computes with.
        max_batch_size: largest batch of the servers that take batches.
        transfer_trials: trials of each way to fetch weights.
        block_bytes: the weights are equal blocks of that many bytes; a multiple of 4, a float's.
        blocks_per_shard: blocks in each file of weights.
        shards: files of weights.
        seed: seed of the order and the weights.
        is_quick: whether the run only tests the program, so that its figures mean nothing.
    """

    parts: tuple[Part, ...]
    trials: int
    concurrencies: tuple[int, ...]
    seconds: float
    warm_up_seconds: float
    most_warm_ups: int
    cores: int
    max_batch_size: int
    transfer_trials: int
    block_bytes: int
    blocks_per_shard: int
    shards: int
    seed: int
    is_quick: bool = False

    @property
    def weights_bytes(self) -> int:
        """Returns the size of all shards together."""
        return self.block_bytes * self.blocks_per_shard * self.shards

    @property
    def disk_bytes(self) -> int:
        """Returns the most disk space that the weights part needs at a time.

        That is an archive with its extracted files, the blocks with their compressed forms, and a
        tenth to spare.
        """
        return round(1.1 * (2 * self.weights_bytes + 4 * self.block_bytes))

    def serving_rounds(self) -> list[list[System]]:
        """Returns the servers in the order in which they are started."""
        return self._rounds(Part.SERVING, tuple(System), self.trials)

    def transfer_rounds(self) -> list[list[Transfer]]:
        """Returns the transfers in the order in which they are made."""
        return self._rounds(Part.WEIGHTS, TRANSFERS, self.transfer_trials)

    def _rounds(self, part: Part, things: Sequence[T], trials: int) -> list[list[T]]:
        """Returns the things in the order of the run: each once per round."""
        return shuffled([things] * (trials if part in self.parts else 0), f"{self.seed} {part}")


def full_design(
    *, parts: tuple[Part, ...], trials: int, transfer_trials: int, cores: int, seed: int
) -> Design:
    """Returns the design of `make bench-lmi`: 2 GB in five files, as flan-t5-xxl has five.

    Args:
        parts: parts that are measured.
        trials: starts of each server.
        transfer_trials: trials of each way to fetch weights.
        cores: threads that each server computes with.
        seed: seed of the order and the weights.
    """
    return Design(
        parts=parts,
        trials=trials,
        concurrencies=(1, 8),
        seconds=3.0,
        warm_up_seconds=3.0,
        most_warm_ups=10,
        cores=cores,
        max_batch_size=8,
        transfer_trials=transfer_trials,
        block_bytes=100_000_000,
        blocks_per_shard=4,
        shards=5,
        seed=seed,
    )


def quick(design: Design) -> Design:
    """Returns a design that goes through everything in little time; its figures mean nothing."""
    return replace(
        design,
        trials=1,
        seconds=0.3,
        warm_up_seconds=0.1,
        most_warm_ups=2,
        transfer_trials=2,
        block_bytes=1_024_000,
        is_quick=True,
    )
