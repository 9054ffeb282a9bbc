"""Facts about a Hugging Face checkpoint in a folder, so that `slipway init` need not ask for them.

Only config.json and the headers of the safetensors files are read: never a weight, never a pickle.
"""

import math
import re
import struct
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slipway.codes.code import Code
from slipway.config.networks import Network, family_of, sections_of
from slipway.config.sections.model import Model
from slipway.errors import UserError
from slipway.json_text import parse_json

_CONFIG, _WEIGHTS, _INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
_QUANTIZATION, _MODULES = "hf_quant_config.json", "modules.json"
_TOKENIZER, _TEMPLATES = "tokenizer_config.json", ("chat_template.jinja", "chat_template.json")
_GENERATION, _SENTENCES = "generation_config.json", "config_sentence_transformers.json"
READ_FILES = (
    _CONFIG, _QUANTIZATION, _MODULES, _SENTENCES, _TOKENIZER, _GENERATION, *_TEMPLATES
)  # fmt: skip
"""What tells of a checkpoint beside its index and its weights."""
LONGEST_HEADER_BYTES = 100_000_000
"""Safetensors' own limit for the header."""
_DTYPES: Mapping[str, str] = {
    "bfloat16": "bf16", "float16": "fp16", "float32": "fp32",
    "BF16": "bf16", "F16": "fp16", "F32": "fp32",
}  # fmt: skip
# ModelOpt names the number format in place of a method.
_ALGORITHMS: Mapping[str, str] = {"nvfp4": "nvfp4", "fp8": "fp8", "fp8_pb_wo": "fp8"}
_OUTPUT_LAYER = re.compile(r"(^|\.)(lm_head|embed_out|output_layer|output)\.\w*weight")
_HEADS_OF_TASKS = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")
_NEEDED = ("layers", "hidden_size", "attention_heads")
# Tensors of quantised checkpoints that describe other tensors: scales, zero points, orders.
_ABOUT_WEIGHTS = re.compile(
    r"(qzeros|g_idx|absmax|quant_map|SCB|weight_format|_scales?|[._]scales?|scale_inv|weight_shape"
    r"|_scale_2|zero_point|quant_state\S*)$"
)
_BITS_OF_A_WORD = {"I32": 32, "U8": 8}
# Tensors that hold several weights in each number.
_PACKED = re.compile(r"(\.qweight|\.weight_packed|_blocks)$")
# Methods that pack weights of four bits into `.weight` itself.
_PACKS_WEIGHT = "bitsandbytes"
# https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
LFS_POINTER = b"version https://git-lfs.github.com/spec/"


@dataclass(frozen=True)
class CheckpointFacts:
    """What a checkpoint's files say about the network.

    Attributes:
        family: `model_type`, with `_` for `-`; None without one.
        parameters: number of weights; None without safetensors files.
        shape: all further fields of the section `model` that the files tell.
        positions: tokens of the longest sequence; None where the network has no limit of its own.
        dtype: precision that an engine computes in, as configs name it; None for any other.
        quantization: method that the weights are stored in, as in `model`; None for plain weights.
        architectures: classes of transformers that the weights are for.
        task: `chat`, `generation`, `embedding`, `reranking`, `classification` or `vision`; None
            where the files do not tell.
        unknown_fields: fields of `model` that an estimate of memory needs, and no file tells.
        new_tokens: tokens of an answer, as generation_config.json limits it; None without a limit.
    """

    family: str | None = None
    parameters: int | None = None
    # Any: a field of `model` is a number, a text or a boolean.
    shape: Mapping[str, Any] = field(default_factory=dict)
    positions: int | None = None
    dtype: str | None = None
    quantization: str | None = None
    architectures: tuple[str, ...] = ()
    task: str | None = None
    unknown_fields: tuple[str, ...] = ()
    new_tokens: int | None = None


def read_checkpoint(directory: Path, shown_as: str) -> CheckpointFacts:
    """Returns the facts of a checkpoint, empty without config.json; raises `UserError`."""
    if not (directory / _CONFIG).is_file():
        return CheckpointFacts()
    config = _document(directory / _CONFIG, shown_as)
    network, method = Network(config), _quantization(directory, shown_as, config)
    architectures = config.get("architectures")
    classes = tuple(map(str, architectures)) if isinstance(architectures, list) else ()
    tensors = list(_all_tensors(directory, shown_as))
    shape: dict[str, int | str] = dict(network.shape())
    is_said = any("tie_word_embeddings" in section for section in sections_of(config))
    if tensors and "vocabulary_size" in shape and not is_said:
        # Safetensors has no weights twice.
        shape["tied_embeddings"] = not any(_OUTPUT_LAYER.search(name) for name, _ in tensors)
    if classes:
        shape["architecture"] = classes[0]
    if method:
        shape["quantization"] = str(method["quant_method"])
    shape = {name: shape[name] for name in Model.model_fields if name in shape}
    is_cached = shape.get("cached_layers") != 0
    return CheckpointFacts(
        family_of(config.get("model_type")),
        _parameters(tensors, method),
        shape,
        network.positions,
        _dtype(config, tensors),
        str(method["quant_method"]) if method else None,
        classes,
        _task(directory, shown_as, config, classes),
        tuple(name for name in _NEEDED if is_cached and name not in shape),
        _new_tokens(directory, shown_as),
    )


def _new_tokens(directory: Path, shown_as: str) -> int | None:
    value = _optional(directory / _GENERATION, shown_as).get("max_new_tokens")
    return value if type(value) is int and value > 0 else None


def _dtype(config: Mapping[str, Any], tensors: list[tuple[str, Mapping[str, Any]]]) -> str | None:
    """Returns the precision that an engine computes in; else that of the most plain weights."""
    for section in sections_of(config):
        given = section.get("torch_dtype") or section.get("dtype")
        if known := _DTYPES.get(str(given).removeprefix("torch.")):
            return known
    counted = Counter[str]()
    for name, tensor in tensors:
        if tensor["dtype"] in _DTYPES and not _ABOUT_WEIGHTS.search(name):
            counted[_DTYPES[tensor["dtype"]]] += math.prod(map(int, tensor["shape"]))
    return counted.most_common(1)[0][0] if counted else None


def _quantization(directory: Path, shown_as: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of the quantisation with `quant_method` as in `model`; else nothing."""
    found: Any = None
    for section in sections_of(config):
        found = found or section.get("quantization_config") or section.get("compression_config")
    if not isinstance(found, dict) and (directory / _QUANTIZATION).is_file():
        found = _document(directory / _QUANTIZATION, shown_as).get("quantization")
    if not isinstance(found, dict):
        return {}
    algorithm = str(found.get("quant_algo", "")).lower()
    method = _ALGORITHMS.get(algorithm) or found.get("quant_method") or algorithm
    name = re.sub(r"[^a-z0-9]+", "_", str(method).lower()).strip("_")
    return {**found, "quant_method": name} if name else {}


def _task(
    directory: Path, shown_as: str, config: Mapping[str, Any], classes: tuple[str, ...]
) -> str | None:
    architecture = classes[0] if classes else ""
    if architecture.endswith(_HEADS_OF_TASKS):
        labels = config.get("id2label")
        # One number for a pair of texts.
        is_score = isinstance(labels, dict) and len(labels) == 1
        return "reranking" if is_score or config.get("num_labels") == 1 else "classification"
    # Of sentence-transformers.
    if _optional(directory / _SENTENCES, shown_as).get("model_type") == "CrossEncoder":
        return "reranking"
    if (directory / _MODULES).is_file():
        return "embedding"
    if any(isinstance(section.get("vision_config"), dict) for section in sections_of(config)):
        return "vision"
    own_code = config.get("auto_map")
    has_writer = isinstance(own_code, dict) and "AutoModelForCausalLM" in own_code
    writes = has_writer or "LMHead" in architecture
    if writes or architecture.endswith(("CausalLM", "ConditionalGeneration")):
        has_template = any((directory / name).is_file() for name in _TEMPLATES) or bool(
            _optional(directory / _TOKENIZER, shown_as).get("chat_template")
        )
        return "chat" if has_template else "generation"
    return "embedding" if architecture.endswith("Model") else None


def weight_files(directory: Path, shown_as: str) -> set[str]:
    """Returns the names of a checkpoint's safetensors files; raises `UserError` for a bad index."""
    if (directory / _WEIGHTS).is_file():
        return {_WEIGHTS}
    if (directory / _INDEX).is_file():
        weight_map = _document(directory / _INDEX, shown_as).get("weight_map")
        if not isinstance(weight_map, dict) or not weight_map:
            error = ValueError("its weight_map must name the file of each weight")
            raise _unreadable(f"{shown_as}/{_INDEX}", "index of weights", error)
        return {Path(name).name for name in set(map(str, weight_map.values()))}
    return set()


def _all_tensors(directory: Path, shown_as: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name in sorted(weight_files(directory, shown_as)):
        yield from _tensors(directory / name, f"{shown_as}/{name}")


def _parameters(
    tensors: list[tuple[str, Mapping[str, Any]]], quantization: Mapping[str, Any]
) -> int | None:
    """Counts the weights of every tensor, of which several may share a number; None without any."""
    if not tensors:
        return None
    names = {name for name, _ in tensors}
    return sum(
        math.prod(map(int, tensor["shape"]))
        * _weights_in_a_number(name, tensor, quantization, names)
        for name, tensor in tensors
        if not _is_buffer(name, tensor)
    )


def _weights_in_a_number(
    name: str, tensor: Mapping[str, Any], quantization: Mapping[str, Any], names: Collection[str]
) -> int:
    """Returns how many weights each number of a tensor holds; 0 for scales and zero points."""
    if not quantization:
        return 1
    if _ABOUT_WEIGHTS.search(name):
        return 0
    # NVFP4 packs two values into a byte, and has their scale beside them.
    has_scale = tensor["dtype"] == "U8" and f"{name}_scale" in names
    is_packed = has_scale or _PACKED.search(name) is not None
    if quantization.get("quant_method") == _PACKS_WEIGHT:
        is_packed = name.endswith(".weight") and tensor["dtype"] == "U8"
    word = _BITS_OF_A_WORD.get(tensor["dtype"])
    return word // _bits(quantization) if is_packed and word is not None else 1


def _bits(quantization: Mapping[str, Any]) -> int:
    """Returns the bits of a packed weight: those that the config names, or four."""
    groups = quantization.get("config_groups")
    group: Any = next(iter(groups.values()), {}) if isinstance(groups, dict) else {}
    weights: Any = group.get("weights") if isinstance(group, dict) else {}
    bits = quantization.get("bits") or (weights or {}).get("num_bits")
    return bits if isinstance(bits, int) and bits in (2, 4, 8) else 4


def _is_buffer(name: str, tensor: Mapping[str, Any]) -> bool:
    # Old checkpoints also have positions, and in GPT-2 the causal mask (`h.0.attn.bias`, of four
    # dimensions): 12 million numbers that are no weights.
    is_mask = name.endswith(("attn.bias", "attn.masked_bias")) and len(tensor["shape"]) in (0, 4)
    return is_mask or tensor["dtype"] in ("I64", "BOOL")


def _tensors(path: Path, shown_as: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > LONGEST_HEADER_BYTES:
                raise ValueError("the header is too long")
            header = parse_json(file.read(length))
        entries = [(name, entry) for name, entry in header.items() if name != "__metadata__"]
        for _, entry in entries:
            math.prod(map(int, entry["shape"]))
            if not isinstance(entry["dtype"], str):
                raise TypeError("a dtype is no text")
    except (OSError, struct.error, ValueError, TypeError, KeyError, AttributeError) as error:
        raise _unreadable(shown_as, "safetensors file", error, path) from None
    yield from entries


def _optional(path: Path, shown_as: str) -> Mapping[str, Any]:
    return _document(path, shown_as) if path.is_file() else {}


def _document(path: Path, shown_as: str) -> Mapping[str, Any]:
    shown = f"{shown_as}/{path.name}"
    try:
        document = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise _unreadable(shown, "JSON document", error, path) from None
    if not isinstance(document, dict):
        raise _unreadable(shown, "JSON document", TypeError("it is no object"))
    return document


def _unreadable(shown: str, kind: str, error: Exception, path: Path | None = None) -> UserError:
    message, remedy = f"{shown} is not a readable {kind}: {error}", "Copy the checkpoint again."
    if isinstance(error, FileNotFoundError):
        message = f"{shown} is missing, and the index of weights names it"
    elif path is not None and not isinstance(error, OSError) and begins_as_pointer(path):
        message = f"{shown} is a pointer of Git LFS in place of the file"
        remedy = "Run `git lfs pull` where it comes from, and copy it again."
    return UserError.of(Code.FILE_UNREADABLE, message, remedy)


def begins_as_pointer(path: Path) -> bool:
    """Returns whether a file stands for another one that Git LFS did not fetch."""
    with path.open("rb") as file:
        return file.read(len(LFS_POINTER)) == LFS_POINTER
