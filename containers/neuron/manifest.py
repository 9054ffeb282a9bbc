"""neuron.json: describes the compiled graphs beside it, and the packages that made them.

The compile job writes it, the program checks it before it starts a worker, and workers read it.
Suppose that a graph was compiled for another batch size, length, number of cores or compiler
version. It would fail minutes into a deployment, or at the first request, with a message that names
none of these.

A worker imports this: it keeps to Python 3.10 and the standard library.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from containers.neuron.pooling import POOLINGS
from containers.serving.predictor import ModelLoadError

MANIFEST_FILE: Final = "neuron.json"
FORMAT_VERSION: Final = 1

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
# NeuronCore Pipeline is a feature of inf1 only.
_PIPELINE_TARGET: Final = "inf1"
# Runtime -> packages in the worker's Python whose versions its graphs depend on. Packages in the
# second tuple only compile, so a serving image may lack them.
RUNTIME_PACKAGES: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    # An ONNX graph itself states the versions of the format that it needs.
    "onnxruntime": ((), ()),
    "torchscript": (("torch",), ()),
    "torch_neuron": (("torch", "torch-neuron"), ("neuron-cc",)),
    "torch_neuronx": (("torch", "torch-neuronx"), ("neuronx-cc",)),
}
INPUT_NAMES: Final = ("input_ids", "attention_mask", "token_type_ids")
DTYPES: Final = ("fp32", "fp16", "bf16")

_REMEDY: Final = "publish the model again, which compiles it anew"
_MOST_CORES: Final = 64
_LARGEST_BATCH: Final = 1024
_LONGEST_SEQUENCE_TOKENS: Final = 4096


@dataclass(frozen=True)
class Manifest:
    """Everything that must be known about compiled graphs before one is loaded.

    Attributes:
        task: one of `TASK_OUTPUTS`.
        target: device that the graphs run on: "cpu", "inf1", "inf2" or "trn1".
        runtime: library that runs the graphs, one of the target's `TARGET_RUNTIMES`.
        batch_size: rows of a batch. A graph for Neuron needs exactly as many; a graph for ONNX
            Runtime also takes fewer.
        pipeline_cores: NeuronCores that a graph is spread over; 1 is no pipeline.
        dtype: type that matrix products are cast to.
        graphs: file of each bucket's graph, by its sequence length in tokens.
        inputs: a subset of `INPUT_NAMES`, in the order in which the graph takes them.
        outputs: names of the graph's outputs, in order.
        pooling: how token vectors become the vector of a text; None for tasks other than
            embeddings.
        normalize: whether embeddings have length 1 if a request does not say.
        versions: versions of the packages that made the graphs.
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
    def takes_partial_batches(self) -> bool:
        """Returns whether a batch may have fewer rows than `batch_size`."""
        return self.runtime == "onnxruntime"

    @property
    def takes_any_length(self) -> bool:
        """Returns whether a batch may have fewer columns than its bucket.

        It may if one file is the graph of several buckets, because that graph has no fixed length.
        """
        one_for_all = len(self.graphs) > 1 and len(set(self.graphs.values())) == 1
        return self.takes_partial_batches and one_for_all


@dataclass(frozen=True)
class Expectations:
    """The container's settings that the manifest must match; None if the environment sets no value.

    Attributes:
        task: SLIPWAY_TASK.
        sequence_length: SLIPWAY_SEQUENCE_LENGTH, the longest bucket.
        batch_size: SLIPWAY_MAX_BATCH_SIZE.
        pipeline_cores: SLIPWAY_PIPELINE_CORES.
        dtype: SLIPWAY_DTYPE.
    """

    task: str | None
    sequence_length: int | None
    batch_size: int
    pipeline_cores: int | None
    dtype: str | None


def write_manifest(manifest: Manifest, model_dir: Path) -> None:
    """Writes neuron.json into `model_dir`."""
    document = {"format_version": FORMAT_VERSION} | dataclasses.asdict(manifest)
    document["graphs"] = {str(length): manifest.graphs[length] for length in manifest.buckets}
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    (model_dir / MANIFEST_FILE).write_text(text, encoding="utf-8")


def read_manifest(model_dir: Path) -> Manifest:
    """Reads neuron.json.

    Raises:
        ModelLoadError: one line with every problem.
    """
    path = model_dir / MANIFEST_FILE
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise ModelLoadError(
            f"{model_dir} lacks {MANIFEST_FILE}, which tells what the model was compiled for: "
            f"{_REMEDY}"
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise ModelLoadError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(document, dict):
        raise ModelLoadError(f"{path} must hold a JSON object")
    version = document.pop("format_version", None)
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise ModelLoadError(
            f"{path} has format_version {json.dumps(version)}, and this container reads "
            f"{FORMAT_VERSION}: {_REMEDY}"
        )
    problems = [f"{name} is missing" for name in _EXPECTED if name not in document]
    problems += [f"{name} is not a field of it" for name in document if name not in _EXPECTED]
    problems += [
        f"{name} must be {expected}, not {json.dumps(document[name])}"
        for name, (expected, is_right) in _EXPECTED.items()
        if name in document and not is_right(document[name])
    ]
    problems = problems or _contradictions(document)
    if problems:
        raise ModelLoadError(f"{path}: {'; '.join(problems)}; {_REMEDY}")
    document["graphs"] = {int(length): name for length, name in document["graphs"].items()}
    for name in ("inputs", "outputs", "compiler_arguments"):
        document[name] = tuple(document[name])
    return Manifest(**document)


def check_manifest(
    manifest: Manifest, expectations: Expectations, installed_versions: Mapping[str, str]
) -> None:
    """Checks that the graphs match the container's settings and run in its versions.

    On the CPU there are no cores, products are not cast, and a batch may be smaller than compiled.
    A sample therefore stands in for a model on any number of cores.

    Args:
        manifest: describes the graphs.
        expectations: the container's settings.
        installed_versions: versions of packages in the workers' Python; packages that are not
            installed are absent.

    Raises:
        ModelLoadError: one line with every mismatch.
    """
    is_cpu = manifest.target == CPU
    problems = [
        f"its {name} is {built}, and {variable} is {asked}"
        for name, built, variable, asked, matters in (
            ("task", manifest.task, "SLIPWAY_TASK", expectations.task, True),
            (
                "longest sequence",
                manifest.buckets[-1],
                "SLIPWAY_SEQUENCE_LENGTH",
                expectations.sequence_length,
                True,
            ),
            (
                "batch_size",
                manifest.batch_size,
                "SLIPWAY_MAX_BATCH_SIZE",
                expectations.batch_size,
                not manifest.takes_partial_batches or expectations.batch_size > manifest.batch_size,
            ),
            (
                "pipeline_cores",
                manifest.pipeline_cores,
                "SLIPWAY_PIPELINE_CORES",
                expectations.pipeline_cores,
                not is_cpu,
            ),
            ("dtype", manifest.dtype, "SLIPWAY_DTYPE", expectations.dtype, not is_cpu),
        )
        if matters and asked is not None and asked != built
    ]
    required, compilers = RUNTIME_PACKAGES[manifest.runtime]
    for package in (*required, *compilers):
        built_with, here = manifest.versions.get(package), installed_versions.get(package)
        if here is None and package in required:
            problems.append(f"it needs {package}, which is not installed here")
        elif here is not None and here != built_with:
            problems.append(
                f"it was made with {package} {built_with or 'of an unknown version'}, and this "
                f"container has {here}"
            )
    if problems:
        raise ModelLoadError(
            f"the model compiled for {manifest.target} cannot serve here: {'; '.join(problems)}; "
            f"{_REMEDY}"
        )


# Any: JSON.
def _contradictions(document: Mapping[str, Any]) -> list[str]:
    """Returns the problems of manifest fields that are valid alone but not together."""
    problems = []
    task, target, runtime = document["task"], document["target"], document["runtime"]
    if runtime not in TARGET_RUNTIMES[target]:
        problems.append(f"runtime {runtime} does not run on {target}")
    if tuple(document["outputs"]) != TASK_OUTPUTS[task]:
        problems.append(f"outputs must be {', '.join(TASK_OUTPUTS[task])} for {task}")
    if (document["pooling"] is None) == (task == EMBEDDINGS):
        problems.append(f"pooling does not go with {task}: it is for {EMBEDDINGS}")
    if document["pipeline_cores"] > 1 and target != _PIPELINE_TARGET:
        problems.append(
            f"pipeline_cores is {document['pipeline_cores']}, and only {_PIPELINE_TARGET} has "
            "NeuronCore Pipeline"
        )
    if "input_ids" not in document["inputs"]:
        problems.append("inputs lacks input_ids")
    return problems


def _whole(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most


def _file_name(value: object) -> bool:
    return isinstance(value, str) and value not in ("", ".", "..") and Path(value).name == value


def _graphs(value: object) -> bool:
    return (
        isinstance(value, dict)
        and bool(value)
        and all(
            length.isascii()
            and length.isdigit()
            and len(length) < 6
            and _whole(int(length), _LONGEST_SEQUENCE_TOKENS)
            and str(int(length)) == length
            and _file_name(name)
            for length, name in value.items()
        )
    )


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _one_of(allowed: Any) -> tuple[str, Callable[[object], bool]]:
    names = tuple(allowed)
    return f"one of {', '.join(names)}", lambda value: isinstance(value, str) and value in names


# Field -> what it must be, in words and as a check.
_EXPECTED: Final[Mapping[str, tuple[str, Callable[[object], bool]]]] = {
    "task": _one_of(TASK_OUTPUTS),
    "target": _one_of(TARGET_RUNTIMES),
    "runtime": _one_of(RUNTIME_PACKAGES),
    "batch_size": (
        f"a whole number from 1 to {_LARGEST_BATCH}",
        lambda value: _whole(value, _LARGEST_BATCH),
    ),
    "pipeline_cores": (
        f"a whole number from 1 to {_MOST_CORES}",
        lambda value: _whole(value, _MOST_CORES),
    ),
    "dtype": _one_of(DTYPES),
    "graphs": ("an object of file names by sequence length", _graphs),
    "inputs": (
        f"an array of different names out of {', '.join(INPUT_NAMES)}",
        lambda value: (
            _texts(value)
            and isinstance(value, list)
            and set(value) <= set(INPUT_NAMES)
            and len(set(value)) == len(value)
        ),
    ),
    "outputs": ("an array of texts", _texts),
    "pooling": (
        f"null or one of {', '.join(POOLINGS)}",
        lambda value: value is None or (isinstance(value, str) and value in POOLINGS),
    ),
    "normalize": ("true or false", lambda value: isinstance(value, bool)),
    "versions": (
        "an object of texts",
        lambda value: isinstance(value, dict) and _texts(list(value.values())),
    ),
    "compiler_arguments": ("an array of texts", _texts),
}
