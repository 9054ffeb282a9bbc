"""The contents of a model directory of this family, checked before anything is loaded.

Required: config.json, tokenizer.json, and the encoder and the decoder step, as graphs or as
engines. generation_config.json is optional. This module keeps to Python 3.10, which the oldest
images of Triton have.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from containers.serving.json_files import POSITIVE, is_whole, problems_with, read_object
from containers.serving.model_files import CONFIG_FILE, TOKENIZER_FILE, missing_files
from containers.serving.predictor import ModelLoadError
from containers.tensorrt.engine_metadata import ModelSizes

GENERATION_CONFIG_FILE: Final = "generation_config.json"
ENCODER_GRAPH: Final = "encoder.onnx"
DECODER_GRAPH: Final = "decoder.onnx"
ENCODER_ENGINE: Final = "encoder.engine"
DECODER_ENGINE: Final = "decoder.engine"

_SIZES: Final = dict.fromkeys(("num_layers", "num_heads", "d_kv", "vocab_size"), POSITIVE)


@dataclass(frozen=True)
class SequenceConfig(ModelSizes):
    """The parts of a Hugging Face T5 config.json that the decode loop needs.

    `start_token_id` is the decoder's first token. generation_config.json overrides config.json for
    the tokens that end an answer.
    """

    start_token_id: int
    end_token_ids: frozenset[int]


def check_files(model_dir: Path) -> bool:
    """Checks that every required file exists; returns whether engines compute, or else graphs.

    Engines come first: a directory may have the graphs beside them. One `ModelLoadError` names all
    missing files.
    """
    has_engines = any(model_dir.glob("*.engine"))
    computing = (ENCODER_ENGINE, DECODER_ENGINE) if has_engines else (ENCODER_GRAPH, DECODER_GRAPH)
    missing = missing_files(model_dir, (CONFIG_FILE, TOKENIZER_FILE, *computing))
    if missing:
        raise ModelLoadError(f"{model_dir} lacks {', '.join(missing)}")
    return has_engines


def read_config(model_dir: Path) -> SequenceConfig:
    """Reads config.json and, if it exists, generation_config.json.

    One `ModelLoadError` names every field that is missing or not usable.
    """
    config = read_object(model_dir / CONFIG_FILE)
    generation = model_dir / GENERATION_CONFIG_FILE
    settings = config | (read_object(generation) if generation.is_file() else {})
    problems = problems_with(config, _SIZES)
    # Any: JSON.
    layers: Any = config.get("num_decoder_layers") or config.get("num_layers")
    if not is_whole(layers, 1):
        problems.append(
            f"num_decoder_layers must be a positive whole number, not {json.dumps(layers)}"
        )
    start: Any = settings.get("decoder_start_token_id")
    if not is_whole(start, 0):
        problems.append(f"decoder_start_token_id must be a token id, not {json.dumps(start)}")
    end: Any = settings.get("eos_token_id")
    ends: list[Any] = end if isinstance(end, list) else [end]
    if not all(is_whole(token, 0) for token in ends):
        problems.append(f"eos_token_id must be a token id or a list of them, not {json.dumps(end)}")
    if problems:
        raise ModelLoadError(f"{model_dir / CONFIG_FILE}: {'; '.join(problems)}")
    return SequenceConfig(
        layers=layers,
        heads=config["num_heads"],
        head_dim=config["d_kv"],
        vocabulary_size=config["vocab_size"],
        start_token_id=start,
        end_token_ids=frozenset(ends),
    )
