"""The sizes that an engine is built for: the optimisation profiles of a graph's inputs.

Nothing here imports TensorRT. This module keeps to Python 3.10.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from containers.jobs.report import CompileError
from containers.tensorrt.engine_metadata import EngineLimits
from containers.tensorrt.stepping import TEMPERATURES


class EngineBuildError(CompileError):
    """TensorRT refuses the graph or cannot build it; the message holds all of TensorRT's errors."""


class Range(NamedTuple):
    """Sizes of one dimension; the engine is fastest at the optimum."""

    minimum: int
    optimum: int
    maximum: int


def batch_range(limits: EngineLimits) -> Range:
    """Returns the range of rows; the optimum is a full batch, because batching is for throughput.

    A row alone is not much faster than a full batch, since a step reads all weights either way.
    """
    return Range(1, limits.max_batch_size, limits.max_batch_size)


@dataclass(frozen=True)
class Profile:
    """The range of each dimension of a graph's inputs, in one optimisation profile.

    The size of a dimension that is None is the graph's. The inputs of a cache share the part of
    their names before the first dot.
    """

    graph: str  # the kind of graph, for messages ("a step graph")
    inputs: Mapping[str, Sequence[Range | None]]

    def of_input(self, name: str, shape: Sequence[int]) -> list[tuple[int, ...]]:
        """Returns the minimum, optimum and maximum shape of an input.

        `shape` is the graph's, with -1 for each dimension that is not fixed. An `EngineBuildError`
        says that such a graph has no such input.
        """
        ranges = self.inputs.get(name.partition(".")[0], ())
        if len(ranges) != len(shape) or any(
            expected is None and size <= 0 for expected, size in zip(ranges, shape, strict=True)
        ):
            raise EngineBuildError(
                f"the graph is not {self.graph}: it has an input {name} of shape {list(shape)}"
            )
        sizes = [
            expected or Range(size, size, size)
            for expected, size in zip(ranges, shape, strict=True)
        ]
        return list(zip(*sizes, strict=True))


def profiles(limits: EngineLimits) -> list[Profile]:
    """Returns the sizes of prefill and of decoding."""
    batch, prompt = batch_range(limits), limits.max_input_tokens
    # The last new token is returned and never fed to the model.
    longest_past = prompt + limits.max_new_tokens - 1
    prefill = _step(batch, Range(1, prompt, prompt), Range(0, 0, 0))
    return [prefill, _step(batch, Range(1, 1, 1), Range(1, prompt, longest_past))]


def encoder_profiles(
    inputs: Sequence[str], batch_size: int, sequence_lengths: Sequence[int]
) -> list[Profile]:
    """Returns the sizes of an encoder's batches: a profile for each length, in their order.

    A batch is padded to its length, because the engine is the fastest for fixed columns.
    """
    rows = Range(1, batch_size, batch_size)
    return [
        Profile("an encoder's graph", dict.fromkeys(inputs, (rows, Range(length, length, length))))
        for length in sequence_lengths
    ]


def _step(batch: Range, sequence: Range, past: Range) -> Profile:
    columns = Range(*map(sum, zip(sequence, past, strict=True)))
    return Profile(
        graph="a step graph",
        inputs={
            "input_ids": (batch, sequence),
            "position_ids": (batch, sequence),
            "attention_mask": (batch, columns),
            "past_key_values": (batch, None, past, None),
            TEMPERATURES: (batch, None, None),
        },
    )
