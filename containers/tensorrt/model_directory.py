"""The contents of a model directory of this family, checked before anything is loaded.

Required: config.json, tokenizer.json, and a graph (model.onnx) or an engine (*.engine, *.plan).
generation_config.json is optional, and so are the files with the chat template. The weights of a
graph may lie in other files, which the graph names.
"""

import json
import mmap
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from containers.serving.json_files import POSITIVE, problems_with, read_object
from containers.serving.model_files import CONFIG_FILE, TOKENIZER_FILE, missing_files
from containers.serving.predictor import ModelLoadError
from containers.tensorrt.engine_metadata import ModelSizes

GRAPH_FILE: Final = "model.onnx"
GENERATION_CONFIG_FILE: Final = "generation_config.json"
TOKENIZER_CONFIG_FILE: Final = "tokenizer_config.json"
CHAT_TEMPLATE_FILE: Final = "chat_template.jinja"
ENGINE_SUFFIXES: Final = (".engine", ".plan")

_SIZES: Final = dict.fromkeys(
    ("n_layer", "n_head", "n_embd", "n_positions", "vocab_size"), POSITIVE
)

# TensorProto.external_data is a list of StringStringEntryProto {key = 1, value = 2}. In the wire
# format an entry with the key "location" is these bytes, then the value's length and the value.
# (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto)
_LOCATION_ENTRY: Final = re.compile(rb"\x0a\x08location\x12([\x01-\x7f])", re.DOTALL)


@dataclass(frozen=True)
class ModelConfig(ModelSizes):
    """The parts of a Hugging Face GPT-2 config.json that generation needs."""

    max_positions: int  # most tokens of prompt and answer together (`n_positions`)
    eos_token_ids: frozenset[int]  # generation_config.json overrides config.json


def check_files(model_dir: Path) -> None:
    """Raises a `ModelLoadError` that names all required files that are missing."""
    missing = missing_files(model_dir, (CONFIG_FILE, TOKENIZER_FILE))
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

    A `ModelLoadError` names every field that is missing or not usable.
    """
    config = read_object(model_dir / CONFIG_FILE)
    generation = model_dir / GENERATION_CONFIG_FILE
    overrides = read_object(generation) if generation.is_file() else {}
    problems = problems_with(config, _SIZES)
    if not problems and config["n_embd"] % config["n_head"]:
        problems.append(f"n_embd={config['n_embd']} is not a multiple of n_head={config['n_head']}")
    eos = overrides.get("eos_token_id", config.get("eos_token_id"))
    eos_list = eos if isinstance(eos, list) else [] if eos is None else [eos]
    if not all(isinstance(token, int) for token in eos_list):
        problems.append(f"eos_token_id must be a token id or a list of them, not {json.dumps(eos)}")
    if problems:
        raise ModelLoadError(f"{model_dir / CONFIG_FILE}: {'; '.join(problems)}")
    return ModelConfig(
        layers=config["n_layer"],
        heads=config["n_head"],
        head_dim=config["n_embd"] // config["n_head"],
        max_positions=config["n_positions"],
        vocabulary_size=config["vocab_size"],
        eos_token_ids=frozenset(eos_list),
    )
