"""The shape of a network as its config.json has it, under the names that each family uses.

What config.json leaves out is the default of transformers' class, if that is known
(`slipway/facts/networks.json`). Nothing else is assumed: a field that no source tells is left out.
"""

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from slipway.facts.tables import read_table

# Sections that hold the decoder of texts in a network of images, audio and texts.
_SECTIONS = ("thinker_config", "text_config", "llm_config", "language_config")
# Each field of `model`, and the names that families have for it.
_NAMES: Mapping[str, str] = {
    "layers": "num_decoder_layers decoder_layers num_hidden_layers n_layer n_layers num_layers",
    "hidden_size": "hidden_size n_embd d_model dim",
    "attention_heads": "num_attention_heads decoder_attention_heads n_head num_heads n_heads",
    "key_value_heads": "num_key_value_heads n_head_kv num_kv_heads kv_n_heads "
    "multi_query_group_num num_attention_groups",
    "head_size": "head_dim d_kv kv_channels attention_head_dim hidden_size_per_head",
    "positions": "model_max_length max_position_embeddings n_positions max_seq_len seq_length "
    "max_sequence_length max_target_positions",
    "vocabulary_size": "vocab_size padded_vocab_size",
    "experts": "num_experts moe_num_experts n_routed_experts num_local_experts",
    "active_experts": "num_experts_per_tok num_experts_per_token top_k_experts moe_topk moe_top_k",
    "sliding_window": "sliding_window attention_window_size attention_chunk_size",
}
# Sizes of the state of Mamba, and of the gated delta rule (Qwen3-Next): heads, both sides of a
# head's matrix, groups, and inputs of a convolution.
_STATE = (
    "linear_num_value_heads mamba_num_heads mamba_n_heads n_mamba_heads",
    "linear_value_head_dim mamba_head_dim mamba_d_head mamba_headdim",
    "linear_key_head_dim ssm_state_size mamba_d_state state_size",
    "linear_num_key_heads mamba_n_groups mamba_ngroups n_groups",
    "linear_conv_kernel_dim mamba_d_conv conv_kernel",
)
# Sections of MPT and DBRX whose fields are the network's own.
_PARTS = ("attn_config", "ffn_config")
_MOST_LAYERS, _LARGEST_FACTOR = 1000, 10_000
_KIND = re.compile("attention|hybrid|mamba|conv|recurrent")
_FULL, _WINDOWED, _NO_CACHE = "full_attention", "sliding_attention", "linear_attention"
# Kinds of layers as Nemotron-H and MiniMax mark them. Others keep nothing.
_MARKS = {"*": _FULL, 1: _FULL, "M": _NO_CACHE, 0: _NO_CACHE}


@functools.cache
def _facts() -> Mapping[str, Any]:
    return read_table("networks.json")


def family_of(model_type: Any) -> str | None:
    """Returns a `model_type` as `model.family` has it; None without one."""
    return model_type.replace("-", "_") if isinstance(model_type, str) and model_type else None


def sections_of(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Returns config.json and the sections on the way to its decoder of texts."""
    found = [config]
    while child := next((c for s in _SECTIONS if isinstance(c := found[-1].get(s), dict)), None):
        found.append(child)
    return found


class Network:
    """The decoder of texts of a config.json, or its encoder, with the defaults of its class."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        table, sections = _facts()["defaults"], sections_of(config)
        row = table.get(family_of(config.get("model_type")), {})
        kind = family_of(sections[-1].get("model_type")) if sections[1:] else None
        self.family = kind or row.get("text") or family_of(config.get("model_type"))
        self._own: dict[str, Any] = {}
        for section in sections:
            parts = (part for name in _PARTS if isinstance(part := section.get(name), dict))
            self._own |= {name: value for part in parts for name, value in part.items()}
            self._own |= section
        self._defaults: dict[str, Any] = dict(table.get(self.family, {}))
        # Weights are tied by the whole network's class.
        for known, whole in ((self._own, config), (self._defaults, row)):
            known |= {name: whole[name] for name in ("tie_word_embeddings",) if name in whole}

    def _value(self, *names: str) -> Any:
        """Returns what the file says; the default of the class where it does not say anything."""
        given = [self._own[name] for name in names if name in self._own]
        known = given or [self._defaults[name] for name in names if name in self._defaults]
        return next((value for value in known if value is not None), None)

    def _number(self, *names: str) -> int | None:
        value = self._value(*names)
        if isinstance(value, list):  # one for each layer
            value = max((each for each in value if isinstance(each, int)), default=None)
        return value if isinstance(value, int) and value > 0 and value is not True else None

    def _field(self, name: str) -> int | None:
        return self._number(*_NAMES[name].split())

    @property
    def is_encoder(self) -> bool:
        """Returns whether a text is computed in one pass, which keeps no keys and values."""
        if self._own.get("use_bidirectional_attention") in (True, "all"):
            return True
        return self.family in _facts()["encoders"].split() and not self._own.get("is_decoder")

    @property
    def positions(self) -> int | None:
        """Returns the tokens of the longest text; None where the network has no limit."""
        # T5's positions are relative: the number in its config limits nothing.
        most = None if self.family == "t5" else self._field("positions")
        if most is None:
            return None
        if self.family in _facts()["padded_positions"].split():
            padding = self._own.get("pad_token_id", 1)
            return most - 1 - padding if isinstance(padding, int) else most
        given = self._own.get("rope_scaling") or self._own.get("rope_parameters")
        scaling: Mapping[str, Any] = given if isinstance(given, dict) else {}
        factor = scaling.get("factor")
        if not isinstance(factor, (int, float)) or not 1 < factor < _LARGEST_FACTOR:
            return most
        kind = scaling.get("rope_type", scaling.get("type"))
        if kind == "yarn":
            original = scaling.get("original_max_position_embeddings")
            return max(most, int((original if isinstance(original, int) else most) * factor))
        # Gemma 3's number has the factor in it.
        is_scaled = kind in ("linear", "dynamic") and not str(self.family).startswith("gemma3")
        return int(most * factor) if is_scaled else most

    def shape(self) -> dict[str, int]:
        """Returns the fields of the section `model` that follow from config.json alone."""
        layers, kinds = self._layers()
        cached = [kind for kind in kinds if _keeps_cache(kind)]
        width, vocabulary = self._field("hidden_size"), self._field("vocabulary_size")
        found: dict[str, int | None] = {
            "layers": layers,
            "hidden_size": width,
            "positions": self.positions,
            "vocabulary_size": vocabulary,
            "tied_embeddings": self._value("tie_word_embeddings") if vocabulary else None,
        }
        if cached or not kinds:  # state spaces have heads too, which no degree has to divide
            heads = found["attention_heads"] = self._field("attention_heads")
            found |= self._kept(heads, width)
        if kinds and (self.is_encoder or len(cached) != layers):
            found["cached_layers"] = 0 if self.is_encoder else len(cached)
        if states := sum(map(_keeps_state, kinds)):
            found["state_bytes"] = self._state_bytes(states)
        found |= {} if self.is_encoder else self._windows(cached)
        experts, active = self._field("experts"), self._field("active_experts")
        if experts is not None and experts > 1:
            found |= {"experts": experts, "active_experts": active}
        return {name: value for name, value in found.items() if value is not None}

    def _kept(self, heads: int | None, width: int | None) -> dict[str, int | None]:
        """Returns what attention keeps of a token, where it does not follow from the heads."""
        rank, rope = self._number("kv_lora_rank"), self._number("qk_rope_head_dim")
        if rank is not None and rope is not None:
            if self.family in _facts()["latent_attention"].split():
                return {"latent_size": rank + rope}
            return {"head_size": (self._number("qk_nope_head_dim") or 0) + rope}
        size, groups = self._field("head_size"), self._field("key_value_heads")
        if self._own.get("multi_query") is True and not self._own.get("new_decoder_architecture"):
            groups = 1
        if self._own.get("multi_query_attention") is False:
            groups = None
        # Both are only written where they differ from what follows from the other fields.
        is_usual = bool(heads and width and size == width // heads)
        return {
            "key_value_heads": None if groups == heads else groups,
            "head_size": None if is_usual else size,
        }

    def _state_bytes(self, layers: int) -> int | None:
        """Returns what these layers keep of a request, as vLLM does; None without their sizes.

        A layer keeps a matrix for each head, and the last inputs of a convolution.
        """
        dtype = self._value("mamba_ssm_cache_dtype", "mamba_ssm_dtype")
        heads, size, side, groups, inputs = (self._number(*names.split()) for names in _STATE)
        kimi = self._own.get("linear_attn_config")
        if isinstance(kimi, dict):
            linear, dtype = Network(kimi), "float32"
            heads = groups = linear._number("num_heads")
            size = side = linear._number("head_dim")
            inputs = linear._number("short_conv_kernel_size")
        expand, hidden = self._number("mamba_expand", "expand"), self._field("hidden_size")
        width = (heads or 0) * (size or 0) or (expand or 0) * (hidden or 0)
        if not width or side is None or inputs is None:
            return None
        matrices = width * side * (4 if dtype == "float32" else 2)
        return layers * (matrices + (width + 2 * (groups or 0) * side) * (inputs - 1) * 2)

    def _layers(self) -> tuple[int | None, list[str]]:
        """Returns the number of layers, and the kind of each; no kinds without the number."""
        layers = self._field("layers")
        if layers is not None and layers > _MOST_LAYERS:
            return layers, []
        listed = list(map(str, self._listed()))
        # A list of something else than kinds, or of a part of the layers, tells nothing.
        if len(listed) < (layers or 0) or not any(map(_KIND.search, listed)):
            listed = []
        if layers is None or len(listed) > layers:
            layers = len(listed) or None
        kinds = listed or [_FULL] * (layers or 0)
        # The last layers of Gemma 3n use the keys and values of earlier ones.
        return layers, kinds[: max(0, len(kinds) - (self._number("num_kv_shared_layers") or 0))]

    def _listed(self) -> Iterator[str]:
        own, layers = self._own, self._field("layers") or 0
        every = range(layers)
        pattern = own.get("sliding_window_pattern", own.get("_sliding_window_pattern"))
        interval, period = map(self._number, ("full_attention_interval", "attn_layer_period"))
        full = own.get("attn_layer_indices") or own.get("full_attn_idxs")
        linear = own.get("linear_attn_config")  # counts from 1
        if isinstance(linear, dict) and isinstance(linear.get("full_attn_layers"), list):
            full = [each - 1 for each in linear["full_attn_layers"] if isinstance(each, int)]
        for name in ("layer_types", "layers_block_type"):
            if isinstance(own.get(name), list) and own[name]:
                yield from own[name]
                return
        marks = own.get("hybrid_override_pattern") or own.get("attn_type_list")
        if isinstance(marks, (str, list)):  # of Nemotron-H, and of MiniMax
            yield from (_MARKS.get(each, "feed_forward") for each in marks)
        elif isinstance(full, list):
            yield from (_FULL if i in full else _NO_CACHE for i in every)
        elif period is not None:
            offset = self._own.get("attn_layer_offset", 4)
            yield from (_FULL if i % period == offset else _NO_CACHE for i in every)
        elif interval is not None:
            yield from (_NO_CACHE if (i + 1) % interval else _FULL for i in every)
        elif own.get("use_sliding_window") is True:
            first = self._number("max_window_layers") or 0
            yield from (_WINDOWED if i >= first else _FULL for i in every)
        elif isinstance(own.get("no_rope_layers"), list) and len(own["no_rope_layers"]) == layers:
            is_chunked = self._number("attention_chunk_size") is not None
            yield from (_WINDOWED if r and is_chunked else _FULL for r in own["no_rope_layers"])
        elif isinstance(pattern, str) and pattern:
            kinds = [_WINDOWED if c == "L" else _FULL for c in pattern]
            yield from (kinds[i % len(kinds)] if i < layers - 1 else _FULL for i in every)
        elif isinstance(pattern, int) and pattern > 0:
            yield from (_WINDOWED if (i + 1) % pattern else _FULL for i in every)
        elif unit := self._defaults.get("layer_types"):
            yield from (unit[i % len(unit)] for i in every)
        elif self._defaults and self._defaults.get("layer_types") is None:
            # A class without kinds of layers has a window in each, if any.
            is_windowed = self._value("use_sliding_window") is not False
            yield from (_WINDOWED if is_windowed else _FULL for _ in every)

    def _windows(self, cached: list[str]) -> dict[str, int]:
        """Returns the window and the layers that have it; nothing where no text is longer."""
        window = self._field("sliding_window")
        windowed = sum(kind.startswith(("sliding", "chunked", "local")) for kind in cached)
        if not window or not windowed or window >= (self.positions or window + 1):
            return {}
        return {"sliding_window": window, "windowed_layers": windowed}


def _keeps_cache(kind: str) -> bool:
    return kind.startswith("hybrid") or ("attention" in kind and not kind.startswith("linear"))


def _keeps_state(kind: str) -> bool:
    return kind.startswith(("hybrid", "linear", "mamba"))
