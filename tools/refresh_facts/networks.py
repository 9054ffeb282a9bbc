"""Writes slipway/facts/networks.json: `python -m tools.refresh_facts.networks`, with transformers.

A published config.json leaves out what is the default of transformers' class, above all in the
section of a text decoder inside a model of images. The table has these defaults by `model_type`.
"""

import datetime
import logging
from typing import Any

from tools.refresh_facts.tables import FACTS, package_version, render, run

DEFAULTS = (
    "num_hidden_layers",
    "hidden_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "vocab_size",
    "max_position_embeddings",
    "tie_word_embeddings",
    "sliding_window",
    "use_sliding_window",
    "max_window_layers",
    "attention_chunk_size",
    "num_kv_shared_layers",
    "kv_lora_rank",
    "qk_rope_head_dim",
    "num_experts",
    "num_local_experts",
    "n_routed_experts",
    "num_experts_per_tok",
)
# `is_deepseek_mla` in vllm/transformers_utils/model_arch_config_convertor.py. Other networks with
# a `kv_lora_rank`, such as MiniCPM3, keep whole heads there.
LATENT = (
    "axk1",
    "deepseek_v2",
    "deepseek_v3",
    "deepseek_v32",
    "glm4_moe_lite",
    "glm_moe_dsa",
    "kimi_k2",
    "kimi_linear",
    "longcat_flash",
    "pangu_ultra_moe",
)
# Encoders that vLLM serves (vllm/model_executor/models/registry.py, gte.py, bert_with_rope.py), of
# which transformers has no class.
MORE_ENCODERS = ("gte", "new", "nomic_bert", "snowflake_gte")
# Networks whose first token has the position after the padding's
# (`create_position_ids_from_input_ids` in transformers' modeling files), so that two are lost.
PADDED_POSITIONS = (
    "camembert",
    "data2vec_text",
    "ibert",
    "lilt",
    "longformer",
    "luke",
    "mpnet",
    "roberta",
    "roberta_prelayernorm",
    "xlm_roberta",
    "xlm_roberta_xl",
    "xmod",
)


def make(as_of: datetime.date) -> str:
    """Returns the table's text."""
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
        row = {name: getattr(kind, name, None) for name in DEFAULTS}
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
    sources = [
        f"defaults, encoders: transformers {package_version('transformers')}, models/*/"
        "configuration_*.py, models/auto/modeling_auto.py (masked, without sequence to sequence)",
        "padded_positions: transformers' classes that call `create_position_ids_from_input_ids`",
        "latent_attention, further encoders: vllm-project/vllm at 00bb6f59, vllm/"
        "transformers_utils/model_arch_config_convertor.py, vllm/model_executor/models/registry.py",
    ]
    table = {
        "as_of": as_of.isoformat(),
        "sources": sources,
        "latent_attention": " ".join(LATENT),
        "padded_positions": " ".join(PADDED_POSITIONS),
        "encoders": " ".join(
            sorted({each.replace("-", "_") for each in encoders} | {*MORE_ENCODERS})
        ),
        "defaults": rows,
    }
    return render(table, levels=2)


def _only(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names if name in row}


def _unit(kinds: list[str]) -> list[str]:
    """Returns the kinds that repeat over the layers; none where nothing repeats."""
    for size in range(1, len(kinds) // 2 + 1):
        if all(each == kinds[index % size] for index, each in enumerate(kinds)):
            return kinds[:size]
    return []


if __name__ == "__main__":
    raise SystemExit(run(FACTS / "networks.json", make))
