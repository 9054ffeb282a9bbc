"""The contents of a model directory of this family, checked before anything is loaded.

Required: config.json, tokenizer.json, and a graph (model.onnx) or an engine (*.engine, *.plan).
generation_config.json is optional. The weights of a graph may lie in other files, which the graph
names.
"""

import json
import mmap
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from containers.serving.predictor import ModelLoadError

GRAPH_FILE: Final = "model.onnx"
CONFIG_FILE: Final = "config.json"
GENERATION_CONFIG_FILE: Final = "generation_config.json"
TOKENIZER_FILE: Final = "tokenizer.json"
ENGINE_SUFFIXES: Final = (".engine", ".plan")

# TensorProto.external_data is a list of StringStringEntryProto {key = 1, value = 2}. In the wire
# format an entry with the key "location" is these bytes, then the value's length and the value.
# (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto)
_LOCATION_ENTRY: Final = re.compile(rb"\x0a\x08location\x12([\x01-\x7f])", re.DOTALL)


@dataclass(frozen=True)
class ModelConfig:
    """The parts of a Hugging Face GPT-2 config.json that generation needs.

    Attributes:
        layers: transformer blocks (`n_layer`).
        heads: attention heads per block (`n_head`).
        head_dim: width of one head (`n_embd / n_head`).
        max_positions: most tokens of prompt and answer together (`n_positions`).
        vocabulary_size: width of the logits (`vocab_size`).
        eos_token_ids: tokens that end a text; generation_config.json overrides config.json.
    """

    layers: int
    heads: int
    head_dim: int
    max_positions: int
    vocabulary_size: int
    eos_token_ids: frozenset[int]


def check_files(model_dir: Path) -> None:
    """Checks that every required file exists.

    Raises:
        ModelLoadError: the message names all missing files.
    """
    if not model_dir.is_dir():
        raise ModelLoadError(f"{model_dir} is not a directory: no model data was mounted")
    missing = [name for name in (CONFIG_FILE, TOKENIZER_FILE) if not (model_dir / name).is_file()]
    graph = model_dir / GRAPH_FILE
    if graph.is_file():
        missing += [
            f"{name} (weights of {GRAPH_FILE})"
            for name in external_data_files(graph)
            if not (model_dir / name).is_file()
        ]
    elif not engine_files(model_dir):
        missing.append(f"{GRAPH_FILE} or an engine (*{', *'.join(ENGINE_SUFFIXES)})")
    if missing:
        raise ModelLoadError(f"{model_dir} lacks {', '.join(missing)}")


def engine_files(model_dir: Path) -> list[str]:
    """Returns the names of the TensorRT engines in `model_dir`, sorted."""
    return sorted(path.name for path in model_dir.iterdir() if path.suffix in ENGINE_SUFFIXES)


def external_data_files(graph: Path) -> list[str]:
    """Returns the files that hold tensors of `graph`, in the graph's order, each once."""
    if not graph.stat().st_size:  # an empty file cannot be mapped; the runtime refuses it later
        return []
    names: dict[str, None] = {}
    # Mapped into memory, since a graph with its weights inside can have 2 GB.
    with graph.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for match in _LOCATION_ENTRY.finditer(data):
            name = data[match.end() : match.end() + match[1][0]]
            names[name.decode("utf-8", errors="replace")] = None
    return list(names)


def read_config(model_dir: Path) -> ModelConfig:
    """Reads config.json and, if it exists, generation_config.json.

    Raises:
        ModelLoadError: the message names every field that is missing or not usable.
    """
    config = _read_object(model_dir / CONFIG_FILE)
    generation = model_dir / GENERATION_CONFIG_FILE
    overrides = _read_object(generation) if generation.is_file() else {}
    problems: list[str] = []
    sizes: dict[str, int] = {}
    for name in ("n_layer", "n_head", "n_embd", "n_positions", "vocab_size"):
        value = config.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            problems.append(f"{name} must be a positive whole number, not {json.dumps(value)}")
            value = 1
        sizes[name] = value
    if sizes["n_embd"] % sizes["n_head"] and not problems:
        problems.append(f"n_embd={sizes['n_embd']} is not a multiple of n_head={sizes['n_head']}")
    eos = overrides.get("eos_token_id", config.get("eos_token_id"))
    eos_list = eos if isinstance(eos, list) else [] if eos is None else [eos]
    if not all(isinstance(token, int) for token in eos_list):
        problems.append(f"eos_token_id must be a token id or a list of them, not {json.dumps(eos)}")
    if problems:
        raise ModelLoadError(f"{model_dir / CONFIG_FILE}: {'; '.join(problems)}")
    return ModelConfig(
        layers=sizes["n_layer"],
        heads=sizes["n_head"],
        head_dim=sizes["n_embd"] // sizes["n_head"],
        max_positions=sizes["n_positions"],
        vocabulary_size=sizes["vocab_size"],
        eos_token_ids=frozenset(eos_list),
    )


def _read_object(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_bytes())
    except ValueError as error:
        raise ModelLoadError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(document, dict):
        raise ModelLoadError(f"{path} must hold a JSON object")
    return document
