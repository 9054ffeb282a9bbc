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
    """A GPU.

    Attributes:
        name: NVIDIA's name ("NVIDIA A10G").
        compute_capability: in the notation of targets ("sm86").
    """

    name: str
    compute_capability: str

    # Any: CUDA's bindings carry no types.
    @classmethod
    def of(cls, properties: Any) -> "Gpu":
        """Returns the GPU with these `cudaDeviceProp`."""
        return cls(
            name=properties.name.split(b"\0")[0].decode(),
            compute_capability=f"sm{properties.major}{properties.minor}",
        )


@dataclass(frozen=True)
class EngineLimits:
    """The largest steps of an engine.

    Attributes:
        max_batch_size: most rows of a step.
        max_input_tokens: most columns of a prefill, or of an encoder.
        max_new_tokens: most tokens generated after a prompt of that length.
    """

    max_batch_size: int
    max_input_tokens: int
    max_new_tokens: int


@dataclass(frozen=True)
class ModelSizes:
    """The sizes in a model's config.json that an engine must share.

    Attributes:
        layers: transformer blocks; each has a key and a value in the cache.
        heads: attention heads per block.
        head_dim: width of one head.
        vocabulary_size: width of the logits.
    """

    layers: int
    heads: int
    head_dim: int
    vocabulary_size: int


@dataclass(frozen=True)
class EngineMetadata(ModelSizes, EngineLimits):
    """Everything that must be known about an engine before it is opened.

    Attributes:
        tensorrt_version: full version of the builder ("10.13.3.9"); the engine runs on no other
            version.
        compute_capability: of the GPU that the engine was built on ("sm86"); it runs on no other.
        gpu_name: NVIDIA's name of that GPU, for human readers.
        graph_sha256: `graph_digest` of the graph that the engine was built from.
        precision: type of cache and logits, "fp16" or "fp32".
    """

    tensorrt_version: str
    compute_capability: str
    gpu_name: str
    graph_sha256: str
    precision: Literal["fp16", "fp32"]

    @property
    def max_past_tokens(self) -> int:
        """Returns the most columns of the cache before a step.

        The last new token is never fed to the model, so it does not count.
        """
        return self.max_input_tokens + self.max_new_tokens - 1


def graph_digest(graph: Path, external_data: Sequence[Path]) -> str:
    """Returns a digest of a graph's content.

    Args:
        graph: the ONNX file.
        external_data: the files of its weights, in any order; none if the weights are in the graph.

    Returns:
        The SHA-256, in hexadecimal, of one line "SHA-256, two spaces, file name" per file, sorted
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
    """Returns the number of likeliest tokens that an engine finds in each row."""
    return min(_CANDIDATES, vocabulary_size)


def write_metadata(model_dir: Path, metadata: EngineMetadata) -> None:
    """Writes engine.json into `model_dir`."""
    _FILE.write(model_dir, asdict(metadata))


def read_metadata(model_dir: Path) -> EngineMetadata:
    """Reads engine.json.

    Raises:
        ModelLoadError: the file is missing or of another format, or names every field that is
            missing, unknown or not usable.
    """
    return EngineMetadata(**_FILE.read(model_dir))


def check_engine(
    metadata: EngineMetadata,
    *,
    tensorrt_version: str,
    compute_capability: str,
    config: ModelSizes,
    max_batch_size: int,
    max_input_tokens: int | None,
    max_new_tokens: int,
    engine: str = ENGINE_FILE,
) -> None:
    """Checks that an engine runs here, and that its limits cover the container's settings.

    Without `max_input_tokens` the engine's limit counts. `engine` is named in the message.

    Raises:
        ModelLoadError: one line with every mismatch.
    """
    problems = []
    if metadata.tensorrt_version != tensorrt_version:
        problems.append(
            f"it was built with TensorRT {metadata.tensorrt_version}, and this container has "
            f"{tensorrt_version}"
        )
    if metadata.compute_capability != compute_capability:
        problems.append(
            f"it was built for {metadata.compute_capability} ({metadata.gpu_name}), and this GPU "
            f"is {compute_capability}"
        )
    for name in (field.name for field in fields(ModelSizes)):
        built, configured = getattr(metadata, name), getattr(config, name)
        if built != configured:
            problems.append(f"its {name} is {built}, and config.json has {configured}")
    limits = {
        "max_batch_size": max_batch_size,
        "max_input_tokens": max_input_tokens,
        "max_new_tokens": max_new_tokens,
    }
    for name, asked in limits.items():
        built = getattr(metadata, name)
        if asked is not None and asked > built:
            problems.append(f"its {name} is {built}, and SLIPWAY_{name.upper()} asks for {asked}")
    if problems:
        raise ModelLoadError(f"{engine} cannot serve here: {'; '.join(problems)}; {REMEDY}")
