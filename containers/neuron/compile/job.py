"""The hyperparameters of a compile job."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from containers.jobs.hyperparameters import HyperparameterReader
from containers.neuron.manifest import (
    CPU,
    DTYPES,
    LARGEST_BATCH,
    LONGEST_SEQUENCE_TOKENS,
    MOST_CORES,
    PIPELINE_TARGET,
    TARGET_RUNTIMES,
    TASK_OUTPUTS,
)

_SHORTEST_SEQUENCE_TOKENS: Final = 8
_LENGTHS: Final = re.compile(r"[0-9]{1,4}(,[0-9]{1,4})*")
_LENGTHS_EXPECTED: Final = (
    f"numbers of tokens from {_SHORTEST_SEQUENCE_TOKENS} to {LONGEST_SEQUENCE_TOKENS}, ascending, "
    'such as "32,128"'
)


@dataclass(frozen=True)
class Hyperparameters:
    """The target of a compile job, and the shapes to compile.

    Attributes:
        target: "cpu", "inf1", "inf2" or "trn1".
        task: one of the manifest's tasks.
        batch_size: sequences of a graph.
        sequence_lengths: the buckets in tokens, ascending; each gets a graph.
        pipeline_cores: NeuronCores that a graph is spread over; 1 is no pipeline.
        dtype: type that matrix products are cast to.
        runtime: library that runs the graphs. For the CPU there is a choice: ONNX Runtime, which
            serves without PyTorch and takes fewer rows than a full batch, or TorchScript.
    """

    target: str
    task: str
    batch_size: int
    sequence_lengths: tuple[int, ...]
    pipeline_cores: int
    dtype: str
    runtime: str


def read_hyperparameters(input_config_dir: Path) -> tuple[Hyperparameters | None, list[str]]:
    """Reads hyperparameters.json.

    Returns:
        The hyperparameters, or None if there is a problem; and every problem.
    """
    reader = HyperparameterReader.open(input_config_dir)
    if isinstance(reader, str):
        return None, [reader]
    target = reader.choice("target", tuple(TARGET_RUNTIMES))
    runtimes = TARGET_RUNTIMES.get(target, ())
    read = Hyperparameters(
        target=target,
        task=reader.choice("task", tuple(TASK_OUTPUTS)),
        batch_size=reader.whole_number("batch_size", LARGEST_BATCH),
        sequence_lengths=_sequence_lengths(reader),
        pipeline_cores=reader.whole_number("pipeline_cores", MOST_CORES),
        dtype=reader.choice("dtype", DTYPES),
        # Without a target the allowed runtimes are unknown.
        runtime=reader.choice("runtime", runtimes, default=runtimes[0]) if runtimes else "",
    )
    problems = reader.finish(Hyperparameters) + _contradictions(read)
    return (None if problems else read), problems


def _sequence_lengths(reader: HyperparameterReader) -> tuple[int, ...]:
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


def _contradictions(read: Hyperparameters) -> list[str]:
    """Returns the problems of values that are valid alone but not together."""
    problems = []
    if read.pipeline_cores > 1 and read.target not in ("", PIPELINE_TARGET):
        problems.append(
            f"pipeline_cores is {read.pipeline_cores}, and target {read.target} has no NeuronCore "
            f"Pipeline: set it to 1, only {PIPELINE_TARGET} has it"
        )
    if read.target == "inf1" and read.dtype == "fp32":
        problems.append(
            "dtype is fp32, and inf1 computes every matrix product in bf16 or fp16: set one of them"
        )
    if read.target == CPU and read.dtype not in ("", "fp32"):
        problems.append(f"dtype is {read.dtype}, and target cpu computes in fp32: set that")
    return problems
