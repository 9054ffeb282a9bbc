"""encoder.json, or neuron.json: the compiled graphs beside it, and the packages that made them.

The compile job of a family writes it, under the family's name of the file. The program checks it
before anything is loaded, and Neuron's workers read it.
Suppose that a graph was compiled for another batch size, length, number of cores or compiler
version. It would fail minutes into a deployment, or at the first request, with a message that names
none of these.

A worker imports this: it keeps to Python 3.10 and the standard library.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from containers.encoders.outputs import POOLINGS
from containers.serving.json_files import (
    TEXTS,
    DescriptionFile,
    Field,
    is_whole,
    one_of,
    text,
    whole_number,
)

NEURON_FILE: Final = "neuron.json"
ENCODER_FILE: Final = "encoder.json"

QUESTION_ANSWERING: Final = "question-answering"
SEQUENCE_CLASSIFICATION: Final = "sequence-classification"
TOKEN_CLASSIFICATION: Final = "token-classification"  # noqa: S105  (a task's name)
EMBEDDINGS: Final = "embeddings"
# Task -> names of its graph's outputs, in order.
TASK_OUTPUTS: Final[Mapping[str, tuple[str, ...]]] = {
    QUESTION_ANSWERING: ("start_logits", "end_logits"),
    SEQUENCE_CLASSIFICATION: ("logits",),
    TOKEN_CLASSIFICATION: ("logits",),
    EMBEDDINGS: ("token_vectors",),
}

CPU: Final = "cpu"
# Target -> runtimes that run a graph for it.
TARGET_RUNTIMES: Final[Mapping[str, tuple[str, ...]]] = {
    CPU: ("onnxruntime", "torchscript"),
    "inf1": ("torch_neuron",),
    "inf2": ("torch_neuronx",),
    "trn1": ("torch_neuronx",),
}
# A GPU's target is its compute capability.
_GPU_TARGET: Final = re.compile(r"sm[1-9][0-9]{1,2}")
TENSORRT: Final = "tensorrt"
# NeuronCore Pipeline is a feature of inf1 only.
PIPELINE_TARGET: Final = "inf1"
# Runtime -> packages in the worker's Python whose versions its graphs depend on. Packages in the
# second tuple only compile, so a serving image may lack them.
RUNTIME_PACKAGES: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    # An ONNX graph itself states the versions of the format that it needs.
    "onnxruntime": ((), ()),
    "torchscript": (("torch",), ()),
    "torch_neuron": (("torch", "torch-neuron"), ("neuron-cc",)),
    "torch_neuronx": (("torch", "torch-neuronx"), ("neuronx-cc",)),
    TENSORRT: ((TENSORRT,), ()),
}
INPUT_NAMES: Final = ("input_ids", "attention_mask", "token_type_ids")
DTYPES: Final = ("fp32", "fp16", "bf16", "int8")

REMEDY: Final = "publish the model again, which compiles it anew"
MOST_CORES: Final = 64
LARGEST_BATCH: Final = 1024
LONGEST_SEQUENCE_TOKENS: Final = 4096


@dataclass(frozen=True)
class Manifest:
    """Everything that must be known about compiled graphs before one is loaded.

    Attributes:
        target: device that the graphs run on: "cpu", "inf1", "inf2", "trn1", or a GPU's compute
            capability such as "sm86".
        runtime: library that runs the graphs, one of the target's `runtimes_of`.
        batch_size: rows of a batch. A graph for Neuron needs exactly as many. ONNX Runtime and
            TensorRT also take fewer.
        pipeline_cores: NeuronCores that a graph is spread over; 1 is no pipeline.
        dtype: type that matrix products are cast to. Of int8 only those with a weight.
        graphs: file of each bucket's graph, by its sequence length in tokens.
        inputs: a subset of `INPUT_NAMES`, in the order in which the graph takes them.
        outputs: names of the graph's outputs, in order.
        pooling: how token vectors become the vector of a text; None for tasks other than
            embeddings.
        normalize: whether embeddings have length 1 if a request does not say.
        compiler_arguments: arguments of the compiler, for human readers.
    """

    task: str
    target: str
    runtime: str
    batch_size: int
    pipeline_cores: int
    dtype: str
    graphs: Mapping[int, str]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    pooling: str | None
    normalize: bool
    versions: Mapping[str, str]
    compiler_arguments: tuple[str, ...] = ()

    @property
    def buckets(self) -> tuple[int, ...]:
        """Returns the sequence lengths in tokens, ascending."""
        return tuple(sorted(self.graphs))

    @property
    def packages(self) -> tuple[str, ...]:
        required, compilers = RUNTIME_PACKAGES[self.runtime]
        return required + compilers

    @property
    def takes_partial_batches(self) -> bool:
        """Returns whether a batch may have fewer rows than `batch_size`."""
        return self.runtime in ("onnxruntime", TENSORRT)

    @property
    def takes_any_length(self) -> bool:
        """Returns whether a batch may have fewer columns than its bucket.

        It may if one file is the graph of several buckets, because that graph has no fixed length.
        """
        one_for_all = len(self.graphs) > 1 and len(set(self.graphs.values())) == 1
        return self.runtime == "onnxruntime" and one_for_all


def runtimes_of(target: str) -> tuple[str, ...]:
    return TARGET_RUNTIMES.get(target, (TENSORRT,) if _GPU_TARGET.fullmatch(target) else ())


def manifest_file(model_dir: Path) -> str:
    """Returns the name of the manifest in `model_dir`; neuron.json if there is none."""
    return ENCODER_FILE if (model_dir / ENCODER_FILE).is_file() else NEURON_FILE


def write_manifest(manifest: Manifest, model_dir: Path, name: str = NEURON_FILE) -> None:
    ascending = {length: manifest.graphs[length] for length in manifest.buckets}
    replace(_FILE, name=name).write(model_dir, asdict(manifest) | {"graphs": ascending})


def read_manifest(model_dir: Path) -> Manifest:
    """Reads the manifest, or raises one `ModelLoadError` with every problem."""
    document = replace(_FILE, name=manifest_file(model_dir)).read(model_dir)
    document["graphs"] = {int(length): name for length, name in document["graphs"].items()}
    for name in ("inputs", "outputs", "compiler_arguments"):
        document[name] = tuple(document[name])
    return Manifest(**document)


# Any: JSON.
def _contradictions(document: Mapping[str, Any]) -> list[str]:
    """Returns the problems of manifest fields that are valid alone but not together."""
    problems = []
    task, target, runtime = document["task"], document["target"], document["runtime"]
    if runtime not in runtimes_of(target):
        problems.append(f"runtime {runtime} does not run on {target}")
    if tuple(document["outputs"]) != TASK_OUTPUTS[task]:
        problems.append(f"outputs must be {', '.join(TASK_OUTPUTS[task])} for {task}")
    if (document["pooling"] is None) == (task == EMBEDDINGS):
        problems.append(f"pooling does not go with {task}: it is for {EMBEDDINGS}")
    if document["pipeline_cores"] > 1 and target != PIPELINE_TARGET:
        problems.append(
            f"pipeline_cores is {document['pipeline_cores']}, and only {PIPELINE_TARGET} has "
            "NeuronCore Pipeline"
        )
    if "input_ids" not in document["inputs"]:
        problems.append("inputs lacks input_ids")
    return problems


def _is_file_name(value: object) -> bool:
    return isinstance(value, str) and value not in ("", ".", "..") and Path(value).name == value


def _are_graphs(value: object) -> bool:
    return (
        isinstance(value, dict)
        and bool(value)
        and all(
            length.isascii()
            and length.isdigit()
            and len(length) < 6
            and is_whole(int(length), 1, LONGEST_SEQUENCE_TOKENS)
            and str(int(length)) == length
            and _is_file_name(name)
            for length, name in value.items()
        )
    )


_FILE: Final = DescriptionFile(
    name=NEURON_FILE,
    format_version=1,
    subject="what the model was compiled for",
    remedy=REMEDY,
    fields={
        "task": one_of(TASK_OUTPUTS),
        "target": text(
            f"one of {', '.join(TARGET_RUNTIMES)}, or a compute capability such as sm86",
            runtimes_of,
        ),
        "runtime": one_of(RUNTIME_PACKAGES),
        "batch_size": whole_number(LARGEST_BATCH),
        "pipeline_cores": whole_number(MOST_CORES),
        "dtype": one_of(DTYPES),
        "graphs": Field("an object of file names by sequence length", _are_graphs),
        "inputs": Field(
            f"an array of different names out of {', '.join(INPUT_NAMES)}",
            lambda value: (
                isinstance(value, list)
                and all(name in INPUT_NAMES for name in value)
                and len(set(value)) == len(value)
            ),
        ),
        "outputs": TEXTS,
        "pooling": Field(
            f"null or one of {', '.join(POOLINGS)}",
            lambda value: value is None or value in POOLINGS,
        ),
        "normalize": Field("true or false", lambda value: isinstance(value, bool)),
        "versions": Field(
            "an object of texts",
            lambda value: isinstance(value, dict) and TEXTS.accepts(list(value.values())),
        ),
        "compiler_arguments": TEXTS,
    },
    contradictions=_contradictions,
)
