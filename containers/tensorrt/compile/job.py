"""A compile job: its hyperparameters, and the process that does it."""

import re
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Generic, Literal, TypeVar

from containers.jobs.checkpoint_files import CheckpointFiles
from containers.jobs.hyperparameters import HyperparameterReader
from containers.jobs.supervision import Child
from containers.tensorrt.engine_metadata import EngineLimits
from containers.tensorrt.settings import MOST_TOKENS

CPU_TARGET: Final = "cpu"

# Any: a dataclass with a `target`.
AskedT = TypeVar("AskedT", bound=Any)
CheckpointT = TypeVar("CheckpointT", bound=CheckpointFiles)

_TARGET: Final = re.compile(r"cpu|sm[1-9][0-9]{1,2}")
_LARGEST_BATCH: Final = 1024


@dataclass(frozen=True)
class Hyperparameters(EngineLimits):
    """The target of a compile job, and the limits to compile for.

    The target is "cpu", ONNX graphs for ONNX Runtime, or a compute capability ("sm86"), engines for
    that GPU. `dtype` is the type of an engine's weights, cache and logits; "int8" quantises a
    graph's weights.
    """

    target: str
    dtype: Literal["fp16", "fp32", "int8"] = "fp16"
    keep_graph: bool = False  # beside the engine, which can then be built again

    @property
    def precision(self) -> Literal["fp16", "fp32"]:
        """Returns the precision of weights, cache and logits; always fp32 on the CPU."""
        return "fp16" if self.target != CPU_TARGET and self.dtype == "fp16" else "fp32"


@dataclass(frozen=True)
class Job(Generic[AskedT, CheckpointT]):
    hyperparameters: AskedT
    checkpoint: CheckpointT

    def child(self, worker: str) -> Child:
        return Child(
            command=(sys.executable, "-m", worker),
            checkpoint_bytes=self.checkpoint.weight_bytes,
            fields=asdict(self.hyperparameters),
        )


def read_target(reader: HyperparameterReader) -> str:
    return reader.text("target", _TARGET, 'cpu, or a compute capability such as "sm86"')


def read_hyperparameters(
    input_config_dir: Path, *, takes_int8: bool = False
) -> tuple[Hyperparameters | None, list[str]]:
    """Reads hyperparameters.json; returns None if there is a problem, and every problem.

    `takes_int8` says whether the job can quantise weights for the target "cpu".
    """
    reader = HyperparameterReader.open(input_config_dir)
    if isinstance(reader, str):
        return None, [reader]
    target = read_target(reader)
    dtypes: tuple[Literal["fp16", "fp32", "int8"], ...] = ("fp16", "fp32")
    if takes_int8 and target == CPU_TARGET:
        dtypes += ("int8",)
    dtype = reader.text("dtype", re.compile("|".join(dtypes)), " or ".join(dtypes), default="fp16")
    keep_graph = reader.text(
        "keep_graph", re.compile("true|false"), "true or false", default="false"
    )
    read = Hyperparameters(
        target=target,
        max_batch_size=reader.whole_number("max_batch_size", _LARGEST_BATCH),
        max_input_tokens=reader.whole_number("max_input_tokens", MOST_TOKENS),
        max_new_tokens=reader.whole_number("max_new_tokens", MOST_TOKENS),
        dtype=next((each for each in dtypes if each == dtype), "fp16"),
        keep_graph=keep_graph == "true",
    )
    problems = reader.finish(Hyperparameters)
    return (None if problems else read), problems
