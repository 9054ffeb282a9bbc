"""engine.json: the graph, the GPU and the versions of the model.engine beside it.

`compile` writes it. The runtime reads it before it opens the engine, because TensorRT's own message
for an engine of another version or another GPU names neither. Nothing here imports TensorRT. This
module keeps to Python 3.10.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal

from containers.serving.json_files import POSITIVE, DescriptionFile, one_of, text
from containers.serving.predictor import ModelLoadError

ENGINE_FILE: Final = "model.engine"
METADATA_FILE: Final = "engine.json"
TIMING_CACHE_FILE: Final = "timing.cache"

# More than the usual `top_k` of 50, and few enough that a row's candidates take a kilobyte.
_CANDIDATES: Final = 128

_BLOCK_BYTES: Final = 1 << 20

REMEDY: Final = "publish the model again, which builds the engine anew"
_FILE: Final = DescriptionFile(
    name=METADATA_FILE,
    format_version=1,
    subject="what the engine was built for",
    remedy=REMEDY,
    fields={
        "tensorrt_version": text("a text", str.strip),
        "compute_capability": text('like "sm86"', re.compile(r"sm[1-9][0-9]{1,2}").fullmatch),
        "gpu_name": text("a text", str.strip),
        "graph_sha256": text("64 hexadecimal digits", re.compile(r"[0-9a-f]{64}").fullmatch),
        "precision": one_of(("fp16", "fp32")),
        "max_batch_size": POSITIVE,
        "max_input_tokens": POSITIVE,
        "max_new_tokens": POSITIVE,
        "layers": POSITIVE,
        "heads": POSITIVE,
        "head_dim": POSITIVE,
        "vocabulary_size": POSITIVE,
    },
)


@dataclass(frozen=True)
class Gpu:
    name: str  # NVIDIA's name ("NVIDIA A10G")
    compute_capability: str  # in the notation of targets ("sm86")

    # Any: CUDA's bindings carry no types.
    @classmethod
    def of(cls, properties: Any) -> "Gpu":
        return cls(
            name=properties.name.split(b"\0")[0].decode(),
            compute_capability=f"sm{properties.major}{properties.minor}",
        )


@dataclass(frozen=True)
class EngineLimits:
    max_batch_size: int  # most rows of a step
    max_input_tokens: int  # most columns of a prefill, or of an encoder
    max_new_tokens: int  # most tokens generated after a prompt of that length


@dataclass(frozen=True)
class ModelSizes:
    """The sizes in a model's config.json that an engine must share."""

    layers: int  # each has a key and a value in the cache
    heads: int  # of each layer
    head_dim: int
    vocabulary_size: int  # width of the logits


@dataclass(frozen=True)
class EngineMetadata(ModelSizes, EngineLimits):
    """Everything that must be known about an engine before it is opened.

    An engine runs only on its version of TensorRT, and on GPUs of its compute capability.
    """

    tensorrt_version: str  # the full version ("10.13.3.9")
    compute_capability: str
    gpu_name: str
    graph_sha256: str  # `graph_digest` of the engine's graph
    precision: Literal["fp16", "fp32"]  # of cache and logits

    # Any: the other fields.
    @classmethod
    def of(cls, limits: EngineLimits, sizes: ModelSizes, **about: Any) -> "EngineMetadata":
        of_limits = {field.name: getattr(limits, field.name) for field in fields(EngineLimits)}
        of_sizes = {field.name: getattr(sizes, field.name) for field in fields(ModelSizes)}
        return cls(**of_limits, **of_sizes, **about)

    @property
    def max_past_tokens(self) -> int:
        """Returns the most columns of the cache before a step, which never has the last token."""
        return self.max_input_tokens + self.max_new_tokens - 1

    @property
    def value_bytes(self) -> int:
        """Returns the size of one number in cache and logits."""
        return 2 if self.precision == "fp16" else 4


def graph_digest(graph: Path, external_data: Sequence[Path]) -> str:
    """Returns a digest of a graph and the files of its weights, in any order.

    It is the SHA-256, in hexadecimal, of one line "SHA-256, two spaces, file name" per file, sorted
    by name. `sha256sum` prints the same lines for the files in their directory.
    """
    lines = []
    for path in sorted([graph, *external_data], key=lambda path: path.name):
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                digest.update(block)
        lines.append(f"{digest.hexdigest()}  {path.name}\n")
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def candidate_count(vocabulary_size: int) -> int:
    return min(_CANDIDATES, vocabulary_size)


def write_metadata(model_dir: Path, metadata: EngineMetadata) -> None:
    _FILE.write(model_dir, asdict(metadata))


def read_metadata(model_dir: Path) -> EngineMetadata:
    """Reads engine.json; a `ModelLoadError` names every missing, unknown or unusable field."""
    return EngineMetadata(**_FILE.read(model_dir))


def check_engine(
    metadata: EngineMetadata,
    gpu: Gpu,
    tensorrt_version: str,
    config: ModelSizes,
    limits: EngineLimits,
    engine: str = ENGINE_FILE,
) -> None:
    """Checks that an engine runs here, and that its limits cover the container's settings.

    `engine` is named in the message of the `ModelLoadError`, which has every mismatch.
    """
    problems = []
    if metadata.tensorrt_version != tensorrt_version:
        problems.append(
            f"it was built with TensorRT {metadata.tensorrt_version}, and this container has "
            f"{tensorrt_version}"
        )
    if metadata.compute_capability != gpu.compute_capability:
        problems.append(
            f"it was built for {metadata.compute_capability} ({metadata.gpu_name}), and this GPU "
            f"is {gpu.compute_capability}"
        )
    for name in (field.name for field in fields(ModelSizes)):
        built, configured = getattr(metadata, name), getattr(config, name)
        if built != configured:
            problems.append(f"its {name} is {built}, and config.json has {configured}")
    for name in (field.name for field in fields(EngineLimits)):
        built, asked = getattr(metadata, name), getattr(limits, name)
        if asked > built:
            problems.append(f"its {name} is {built}, and SLIPWAY_{name.upper()} asks for {asked}")
    if problems:
        raise ModelLoadError(f"{engine} cannot serve here: {'; '.join(problems)}; {REMEDY}")
