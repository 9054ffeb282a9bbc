"""Writes slipway/facts/networks.json: `python -m tools.refresh_facts.networks`, with transformers.

A published config.json leaves out what is the default of transformers' class, above all in the
section of a text decoder inside a model of images. The table has these defaults by `model_type`.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final

from tools.refresh_facts.tables import FACTS, by_hand, package_version, run

_TABLES: Final[Mapping[str, str]] = by_hand("network_tables.yaml")


def make() -> Mapping[str, Any]:
    from huggingface_hub.errors import StrictDataclassError
    from transformers.models.auto import configuration_auto, modeling_auto

    # Defaults of a few classes contradict each other, which transformers logs.
    logging.getLogger("transformers").setLevel(logging.ERROR)
    rows: dict[str, dict[str, Any]] = {}
    for model_type in sorted(configuration_auto.CONFIG_MAPPING_NAMES):
        kind = configuration_auto.CONFIG_MAPPING[model_type]
        try:
            text = kind().get_text_config().model_type
        except (ValueError, StrictDataclassError):  # two classes refuse their own defaults
            text = model_type
        row = {name: getattr(kind, name, None) for name in _TABLES["defaults"].split()}
        row = {name: value for name, value in row.items() if isinstance(value, int)}
        if text not in ("", model_type):
            row = {"text": text, **_only(row, "tie_word_embeddings")}
        elif "num_hidden_layers" not in row or "vocab_size" not in row:
            continue
        elif listed := getattr(kind(), "layer_types", None):
            row["layer_types"] = _unit([str(each) for each in listed])
        rows[model_type.replace("-", "_")] = row
    masked = set(modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES)
    encoders = masked - set(modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES)
    named = {each.replace("-", "_") for each in encoders}
    sources = [
        f"defaults, encoders: transformers {package_version('transformers')}, models/*/"
        "configuration_*.py, models/auto/modeling_auto.py (masked, without sequence to sequence)",
        "padded_positions: transformers' classes that call `create_position_ids_from_input_ids`",
        "latent_attention, further encoders: vllm-project/vllm at 00bb6f59, vllm/"
        "transformers_utils/model_arch_config_convertor.py, vllm/model_executor/models/registry.py",
    ]
    return {
        "sources": sources,
        "latent_attention": _TABLES["latent_attention"],
        "padded_positions": _TABLES["padded_positions"],
        "encoders": " ".join(sorted(named.union(_TABLES["more_encoders"].split()))),
        "defaults": rows,
    }


def _only(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names if name in row}


def _unit(kinds: list[str]) -> list[str]:
    """Returns the kinds that repeat over the layers; none where nothing repeats."""
    for size in range(1, len(kinds) // 2 + 1):
        if all(each == kinds[index % size] for index, each in enumerate(kinds)):
            return kinds[:size]
    return []


if __name__ == "__main__":
    raise SystemExit(run(FACTS / "networks.json", make, levels=2))
