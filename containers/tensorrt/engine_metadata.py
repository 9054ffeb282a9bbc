"""engine.json: the graph, the GPU and the versions of the model.engine beside it.

`compile` writes it. The runtime reads it before it opens the engine, because TensorRT's own message
for an engine of another version or another GPU names neither. Nothing here imports TensorRT. This
module keeps to Python 3.10.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal, Protocol

from containers.serving.json_files import POSITIVE, DescriptionFile, one_of, text
from containers.serving.predictor import ModelLoadError

ENGINE_FILE: Final = "model.engine"
METADATA_FILE: Final = "engine.json"
TIMING_CACHE_FILE: Final = "timing.cache"

# Numbers of the engine's optimisation profiles.
PREFILL_PROFILE: Final = 0
DECODE_PROFILE: Final = 1

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
class EngineMetadata:
    """Everything that must be known about an engine before it is opened.

    Attributes:
        tensorrt_version: full version of the builder ("10.13.3.9"); the engine runs on no other
            version.
        compute_capability: of the GPU that the engine was built on ("sm86"); it runs on no other.
        gpu_name: NVIDIA's name of that GPU, for human readers.
        graph_sha256: `graph_digest` of the graph that the engine was built from.
        precision: type of cache and logits, "fp16" or "fp32".
        max_batch_size: most rows of a step, in both profiles.
        max_input_tokens: most columns of a prefill.
        max_new_tokens: most tokens generated after a prompt of that length.
        layers: transformer blocks; each has a key and a value in the cache.
        heads: attention heads per block.
        head_dim: width of one head.
        vocabulary_size: width of the logits.
    """

    tensorrt_version: str
    compute_capability: str
    gpu_name: str
    graph_sha256: str
    precision: Literal["fp16", "fp32"]
    max_batch_size: int
    max_input_tokens: int
    max_new_tokens: int
    layers: int
    heads: int
    head_dim: int
    vocabulary_size: int

    @property
    def max_past_tokens(self) -> int:
        """Returns the most columns of the cache before a step.

        The last new token is never fed to the model, so it does not count.
        """
        return self.max_input_tokens + self.max_new_tokens - 1


class ModelSizes(Protocol):
    """The sizes in a model's config.json that an engine must share."""

    @property
    def layers(self) -> int:
        """Returns the number of blocks that have a cache."""

    @property
    def heads(self) -> int:
        """Returns the attention heads per block."""

    @property
    def head_dim(self) -> int:
        """Returns the width of one head."""

    @property
    def vocabulary_size(self) -> int:
        """Returns the width of the logits."""


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

    Args:
        metadata: describes the engine.
        tensorrt_version: full version of the runtime.
        compute_capability: of this machine's GPU, in the metadata's notation.
        config: values of the model's config.json.
        max_batch_size: most rows of a batch.
        max_input_tokens: longest prompt; None takes the engine's limit.
        max_new_tokens: most new tokens of a request.
        engine: the file or files, for the message.

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
    problems += [
        f"its {name} is {built}, and config.json has {configured}"
        for name, built, configured in (
            ("layers", metadata.layers, config.layers),
            ("heads", metadata.heads, config.heads),
            ("head_dim", metadata.head_dim, config.head_dim),
            ("vocabulary_size", metadata.vocabulary_size, config.vocabulary_size),
        )
        if built != configured
    ]
    problems += [
        f"its {name} is {built}, and {variable} asks for {asked}"
        for name, built, variable, asked in (
            (
                "max_batch_size",
                metadata.max_batch_size,
                "SLIPWAY_MAX_BATCH_SIZE",
                max_batch_size,
            ),
            (
                "max_input_tokens",
                metadata.max_input_tokens,
                "SLIPWAY_MAX_INPUT_TOKENS",
                max_input_tokens,
            ),
            (
                "max_new_tokens",
                metadata.max_new_tokens,
                "SLIPWAY_MAX_NEW_TOKENS",
                max_new_tokens,
            ),
        )
        if asked is not None and asked > built
    ]
    if problems:
        raise ModelLoadError(f"{engine} cannot serve here: {'; '.join(problems)}; {REMEDY}")
