"""The hyperparameters of a compile job, and its worker's order. It keeps to Python 3.10."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from containers.encoders.compile.job import EncoderHyperparameters, read_sequence_lengths
from containers.encoders.manifest import (
    CPU,
    LARGEST_BATCH,
    MOST_CORES,
    PIPELINE_TARGET,
    TARGET_RUNTIMES,
    TASK_OUTPUTS,
)
from containers.jobs.hyperparameters import HyperparameterReader

_DTYPES: Final = ("fp32", "fp16", "bf16")


@dataclass(frozen=True)
class Hyperparameters(EncoderHyperparameters):
    """The target of a compile job, and the shapes to compile.

    A graph is spread over `pipeline_cores`; 1 is no pipeline. For the CPU there is a choice of
    `runtime`: ONNX Runtime, which serves without PyTorch and takes fewer rows than a full batch, or
    TorchScript.
    """

    pipeline_cores: int
    runtime: str


@dataclass(frozen=True)
class WorkerCommand(Hyperparameters):
    """A job whose hyperparameters and checkpoint were checked; see `encoders.compile.checkpoint`.

    `output` is the directory for the file with the reason of a failure.
    """

    checkpoint: Path
    output: Path
    model_class: str
    pooling: str | None
    normalize: bool

    def to_json(self) -> str:
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> "WorkerCommand":
        document = json.loads(text)
        for name in ("checkpoint", "output"):
            document[name] = Path(document[name])
        document["sequence_lengths"] = tuple(document["sequence_lengths"])
        return cls(**document)


def read_hyperparameters(input_config_dir: Path) -> tuple[Hyperparameters | None, list[str]]:
    """Reads hyperparameters.json; returns None if there is a problem, and every problem."""
    reader = HyperparameterReader.open(input_config_dir)
    if isinstance(reader, str):
        return None, [reader]
    target = reader.choice("target", tuple(TARGET_RUNTIMES))
    runtimes = TARGET_RUNTIMES.get(target, ())
    read = Hyperparameters(
        target=target,
        task=reader.choice("task", tuple(TASK_OUTPUTS)),
        batch_size=reader.whole_number("batch_size", LARGEST_BATCH),
        sequence_lengths=read_sequence_lengths(reader),
        pipeline_cores=reader.whole_number("pipeline_cores", MOST_CORES),
        dtype=reader.choice("dtype", _DTYPES),
        # Without a target the allowed runtimes are unknown.
        runtime=reader.choice("runtime", runtimes, default=runtimes[0]) if runtimes else "",
    )
    problems = reader.finish(Hyperparameters) + _contradictions(read)
    return (None if problems else read), problems


def _contradictions(read: Hyperparameters) -> list[str]:
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
