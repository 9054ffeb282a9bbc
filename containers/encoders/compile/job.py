"""The hyperparameters that the compile jobs of encoders share."""

import re
from dataclasses import dataclass
from typing import Final

from containers.encoders.manifest import LONGEST_SEQUENCE_TOKENS
from containers.jobs.hyperparameters import HyperparameterReader

_SHORTEST_SEQUENCE_TOKENS: Final = 8
_LENGTHS: Final = re.compile(r"[0-9]{1,4}(,[0-9]{1,4})*")
_LENGTHS_EXPECTED: Final = (
    f"numbers of tokens from {_SHORTEST_SEQUENCE_TOKENS} to {LONGEST_SEQUENCE_TOKENS}, ascending, "
    'such as "32,128"'
)


@dataclass(frozen=True)
class EncoderHyperparameters:
    """The target of a compile job, and the shapes to compile.

    `batch_size` counts the sequences of a graph, and `sequence_lengths` are the buckets in tokens,
    ascending.
    """

    target: str
    task: str
    batch_size: int
    sequence_lengths: tuple[int, ...]
    dtype: str


def read_sequence_lengths(reader: HyperparameterReader) -> tuple[int, ...]:
    """Returns the hyperparameter `sequence_lengths`; problems stay with the reader."""
    text = reader.text("sequence_lengths", _LENGTHS, _LENGTHS_EXPECTED)
    lengths = tuple(int(part) for part in text.split(",") if part)
    in_range = all(
        _SHORTEST_SEQUENCE_TOKENS <= length <= LONGEST_SEQUENCE_TOKENS for length in lengths
    )
    if text and not (in_range and list(lengths) == sorted(set(lengths))):
        reader.problems.append(
            f'hyperparameter sequence_lengths="{text}" is not {_LENGTHS_EXPECTED}'
        )
    return lengths
