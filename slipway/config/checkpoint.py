"""Facts about a Hugging Face checkpoint in a folder, so that `slipway init` need not ask for them.

Only config.json and the headers of the safetensors files are read: never a weight, never a pickle.
"""

import math
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slipway.codes.code import Code
from slipway.errors import UserError
from slipway.json_text import parse_json

_CONFIG, _WEIGHTS, _INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
LONGEST_HEADER_BYTES = 100_000_000
"""Safetensors' own limit for the header."""
# Each field of `model`, and the names that the families have for it.
_SHAPE_NAMES: Mapping[str, tuple[str, ...]] = {
    "layers": ("num_decoder_layers", "num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "hidden_size": ("hidden_size", "n_embd", "d_model", "dim"),
    "attention_heads": ("num_attention_heads", "n_head", "num_heads", "n_heads"),
    "key_value_heads": ("num_key_value_heads",),
    "head_size": ("head_dim", "d_kv"),
}
_POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
_DTYPES: Mapping[str, str] = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
# Tensors of quantised checkpoints that describe other tensors: scales, zero points, orders.
_ABOUT_WEIGHTS = re.compile(
    r"(qzeros|g_idx|absmax|quant_map|SCB|weight_format|_scales?|[._]scales?|scale_inv|weight_shape"
    r"|zero_point|quant_state\S*)$"
)
_BITS_OF_A_WORD = {"I32": 32, "U8": 8}
# Tensors that hold several weights in each number.
_PACKED = re.compile(r"(\.qweight|\.weight_packed|_blocks)$")
# Methods that pack weights of four bits into `.weight` itself.
_PACKS_WEIGHT = "bitsandbytes"


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
    """

    family: str | None = None
    parameters: int | None = None
    shape: Mapping[str, int | str] = field(default_factory=dict)
    positions: int | None = None
    dtype: str | None = None
    quantization: str | None = None
    architectures: tuple[str, ...] = ()
    task: str | None = None
    unknown_fields: tuple[str, ...] = ()


def read_checkpoint(directory: Path, shown_as: str) -> CheckpointFacts:
    """Returns the facts of a checkpoint; empty facts where the folder holds no config.json.

    Raises:
        UserError: a file is not what its name says.
    """
    if not (directory / _CONFIG).is_file():
        return CheckpointFacts()
    config = _document(directory / _CONFIG, shown_as)
    model_type = config.get("model_type")
    family = model_type.replace("-", "_") if isinstance(model_type, str) else None
    dtype = str(config.get("torch_dtype") or config.get("dtype"))
    quantization = config.get("quantization_config")
    quantization = quantization if isinstance(quantization, dict) else {}
    architectures = config.get("architectures")
    # A network of images and texts has the numbers of its decoder in a section.
    text = config.get("text_config")
    network = {**config, **text} if isinstance(text, dict) else config
    # T5's positions are relative: the number in its config limits nothing.
    names = () if family == "t5" else _POSITIONS
    positions = (network.get(name) for name in names)
    return CheckpointFacts(
        family,
        _parameters(directory, shown_as, quantization),
        _shape(network),
        next((value for value in positions if isinstance(value, int) and value > 0), None),
        _DTYPES.get(dtype.removeprefix("torch.")),
        str(quantization["quant_method"]) if quantization.get("quant_method") else None,
        tuple(map(str, architectures)) if isinstance(architectures, list) else (),
    )


def _shape(config: Mapping[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, aliases in _SHAPE_NAMES.items():
        values = (config.get(alias) for alias in aliases)
        value = next((value for value in values if isinstance(value, int)), None)
        if value is not None:
            found[name] = value
    # Both are only written where they differ from what follows from the other fields.
    heads, width = found.get("attention_heads"), found.get("hidden_size")
    if found.get("key_value_heads") == heads:
        found.pop("key_value_heads", None)
    if heads and width and found.get("head_size") == width // heads:
        found.pop("head_size", None)
    return found


def weight_files(directory: Path, shown_as: str) -> set[str]:
    """Returns the names of a checkpoint's safetensors files; none where it has no such weights.

    Args:
        directory: has the index, if there is one, or the only file.
        shown_as: its name in messages.

    Raises:
        UserError: the index is not what its name says.
    """
    if (directory / _WEIGHTS).is_file():
        return {_WEIGHTS}
    if (directory / _INDEX).is_file():
        weight_map = _document(directory / _INDEX, shown_as).get("weight_map")
        if not isinstance(weight_map, dict) or not weight_map:
            error = ValueError("its weight_map must name the file of each weight")
            raise _unreadable(f"{shown_as}/{_INDEX}", "index of weights", error)
        return {Path(str(name)).name for name in weight_map.values()}
    return set()


def _parameters(directory: Path, shown_as: str, quantization: Mapping[str, Any]) -> int | None:
    """Counts the weights of every tensor; None without safetensors files.

    Args:
        directory: the checkpoint.
        shown_as: its name in messages.
        quantization: `quantization_config` of config.json; several weights may share a number.
    """
    names = weight_files(directory, shown_as)
    if not names:
        return None
    return sum(
        math.prod(map(int, tensor["shape"])) * _weights_in_a_number(key, tensor, quantization)
        for name in sorted(names)
        for key, tensor in _tensors(directory / name, f"{shown_as}/{name}")
        if not _is_buffer(key, tensor)
    )


def _weights_in_a_number(
    name: str, tensor: Mapping[str, Any], quantization: Mapping[str, Any]
) -> int:
    """Returns how many weights each number of a tensor holds; 0 for scales and zero points."""
    if not quantization:
        return 1
    if _ABOUT_WEIGHTS.search(name):
        return 0
    is_packed = _PACKED.search(name) is not None
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
    """Yields name and header entry of each tensor of a safetensors file."""
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
        raise _unreadable(shown_as, "safetensors file", error) from None
    yield from entries


def _document(path: Path, shown_as: str) -> Mapping[str, Any]:
    shown = f"{shown_as}/{path.name}"
    try:
        document = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise _unreadable(shown, "JSON document", error) from None
    if not isinstance(document, dict):
        raise _unreadable(shown, "JSON document", TypeError("it is no object"))
    return document


def _unreadable(shown: str, kind: str, error: Exception) -> UserError:
    return UserError.of(
        Code.FILE_UNREADABLE,
        f"{shown} is not a readable {kind}: {error}",
        "Copy the checkpoint again; Git LFS may have left a pointer in place of a file.",
    )
