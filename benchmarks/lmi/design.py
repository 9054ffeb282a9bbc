"""Defines the measurements and their order."""

import json
from dataclasses import dataclass, replace
from enum import StrEnum

from benchmarks.errors import BenchmarkError
from benchmarks.report import Labelled
from benchmarks.trials import shuffled


class Part(StrEnum):
    SERVING = "serving"
    WEIGHTS = "weights"


class System(Labelled):
    SLIPWAY = "slipway", "Slipway's core, shared batches"
    SLIPWAY_SINGLE = "slipway-single", "Slipway's core, one at a time"
    DJL_GRAPH = "djl-graph", "DJL Serving, same graph, its batches"
    DJL_GRAPH_SINGLE = "djl-graph-single", "DJL Serving, same graph, one at a time"
    DJL_TRANSFORMERS = "djl-transformers", "DJL Serving, its own handler, PyTorch"
    DJL_TRANSFORMERS_BATCHES = (
        "djl-transformers-batches",
        "DJL Serving, its own handler, its batches",
    )

    @property
    def is_djl(self) -> bool:
        return self not in (System.SLIPWAY, System.SLIPWAY_SINGLE)

    @property
    def takes_batches(self) -> bool:
        """Returns whether requests that are present together are computed together."""
        return self in (System.SLIPWAY, System.DJL_GRAPH, System.DJL_TRANSFORMERS_BATCHES)

    @property
    def is_own_handler(self) -> bool:
        return self in (System.DJL_TRANSFORMERS, System.DJL_TRANSFORMERS_BATCHES)


class Way(Labelled):
    SYNC = "s5cmd-sync", "the prefix, `s5cmd sync` as the LMI images call it"
    COPY = "s5cmd-copy", "the prefix, `s5cmd run` of `cp` as `slipway publish` calls it"
    STREAMED = "tar-streamed", "model.tar.gz, one GET, extracted while it arrives"
    STORED = "tar-stored", "model.tar.gz, one GET to a file, then extracted"

    @property
    def is_archive(self) -> bool:
        return self in (Way.STREAMED, Way.STORED)


class Content(Labelled):
    RANDOM = "random", "random bytes"
    FLOAT32 = "float32", "normal float32 values"


@dataclass(frozen=True)
class Transfer:
    """A way to fetch weights of one content.

    A prefix is copied unchanged, whatever its content, so it is measured with one content only.
    """

    way: Way
    content: Content

    @property
    def key(self) -> str:
        return f"{self.way} {self.content}"


BASELINE = Transfer(Way.SYNC, Content.RANDOM)
"""What the other ways are compared with: what the container does."""
TRANSFERS = (
    BASELINE,
    Transfer(Way.COPY, Content.RANDOM),
    *(Transfer(way, content) for way in (Way.STREAMED, Way.STORED) for content in Content),
)


@dataclass(frozen=True)
class Comparison:
    """Slipway's server and DJL Serving's, which answer one question of the report together."""

    title: str
    system: System
    other: System


COMPARISONS = (
    Comparison(
        "the same graph, one request at a time", System.SLIPWAY_SINGLE, System.DJL_GRAPH_SINGLE
    ),
    Comparison("the same graph, in batches", System.SLIPWAY, System.DJL_GRAPH),
    Comparison("DJL's own handler, in batches", System.SLIPWAY, System.DJL_TRANSFORMERS_BATCHES),
    Comparison("each as it comes", System.SLIPWAY, System.DJL_TRANSFORMERS),
)
"""From what the server alone costs to what a user of either would see."""


@dataclass(frozen=True)
class Design:
    """The whole plan of a run; the same values give the same order and the same weights.

    The weights are 2 GB in five files, as flan-t5-xxl has five.
    """

    parts: tuple[Part, ...] = tuple(Part)
    trials: int = 6  # starts of each server, each with every concurrency once
    concurrencies: tuple[int, ...] = (1, 8)
    seconds: float = 3.0  # least time of a measurement
    warm_up_seconds: float = 3.0  # of each round of requests before a server is measured
    most_warm_ups: int = 10  # they end once a round is hardly faster than the best one
    cores: int = 1  # threads of each server
    max_batch_size: int = 8
    transfer_trials: int = 6  # of each way to fetch weights
    block_bytes: int = 100_000_000  # of equal blocks; a multiple of 4, a float's
    blocks_per_shard: int = 4
    shards: int = 5  # files of weights
    seed: int = 1
    is_quick: bool = False  # only tests the program

    @property
    def weights_bytes(self) -> int:
        return self.block_bytes * self.blocks_per_shard * self.shards

    @property
    def disk_bytes(self) -> int:
        """Returns the most disk space that the weights part needs at a time, with a tenth to spare.

        It is for the archives, the extracted files and their archive, and a file of each content.
        """
        one_file = self.block_bytes * self.blocks_per_shard
        return round(1.1 * (4 * self.weights_bytes + len(Content) * one_file))

    def serving_rounds(self) -> list[list[System]]:
        return shuffled([tuple(System)] * self.trials, f"{self.seed} {Part.SERVING}")

    def transfer_rounds(self) -> list[list[Transfer]]:
        return shuffled([TRANSFERS] * self.transfer_trials, f"{self.seed} {Part.WEIGHTS}")


def quick(design: Design) -> Design:
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


MAX_NEW_TOKENS = 32
PROMPTS = (
    "Amazon S3 bucket",
    "Specifies the name of the",
    "The maximum number of results to return in a single",
    "The Amazon Resource Name (ARN) of",
    "Specifies whether",
    "A list of",
    "The status of the",
    "Creates a",
    "Returns information about",
    "The date and time",
    "If you specify",
    "You can use this operation to",
    "The request was denied because",
    "For more information, see",
    "When you create a",
    "To view the",
)


def body(prompt: str) -> str:
    """Returns a request in the form that every server takes; greedy, the default of all."""
    parameters = {"max_new_tokens": MAX_NEW_TOKENS, "do_sample": False}
    return json.dumps({"inputs": prompt, "parameters": parameters})


BODIES = tuple(map(body, PROMPTS))


def completion(index: int, answer: str) -> str:
    """Returns the text that was added to a prompt, which DJL Serving's own handler repeats."""
    try:
        [each] = json.loads(answer)
        text: str = each["generated_text"]
        added = text.removeprefix(PROMPTS[index])
    except (ValueError, TypeError, KeyError, AttributeError):
        raise BenchmarkError(f"not an answer to {PROMPTS[index]!r}: {answer[:500]}") from None
    if not added.strip():
        raise BenchmarkError(f"nothing was added to {PROMPTS[index]!r}: {answer[:500]}")
    return added
