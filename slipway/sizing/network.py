"""What a network reads and computes for one token, as far as its shape tells."""

from dataclasses import dataclass
from typing import Final

from slipway.config.sections.model import Model

# Methods by the way that an engine computes with them.
_FORMATS: Final = {
    None: "plain",
    "fp8": "fp8",
    "fbgemm_fp8": "fp8",
    "gptq": "gptq",
    "mxfp4": "mxfp4",
    "gpt_oss_mxfp4": "mxfp4",
}
_TWO_BYTES: Final = 2


class UnknownShapeError(ValueError):
    """The shape does not tell what a token reads; the text is half a sentence."""


@dataclass(frozen=True)
class Network:
    """A decoder of texts. Bytes are those of one copy, over all its GPUs.

    `kind` is `dense` or `moe`, and the format of the weights: `plain`, `fp8`, `gptq`, `mxfp4`.
    `attention_width` is that of all heads together. Every token computes with the shared
    parameters, and with `active_experts` of a layer. `cached_bytes` are keys and values of a token
    in all layers without a window, and `windowed_bytes` in those with one. `state_bytes` are of a
    request, in layers of linear attention or Mamba: such states, and so prompts, cannot be kept.
    """

    kind: tuple[str, str]
    layers: int
    width: int
    attention_width: int
    parameters: int
    shared_parameters: float
    shared_bytes: float
    expert_parameters: float = 0.0
    expert_bytes: float = 0.0
    experts: int = 0
    active_experts: int = 0
    key_value_heads: int = 1
    cached_bytes: float = 0.0
    windowed_bytes: float = 0.0
    window: int = 0
    state_bytes: float = 0.0
    reuses_prompts: bool = True

    @property
    def active_parameters(self) -> float:
        """Returns the weights that compute one token."""
        share = self.active_experts / self.experts if self.experts else 0.0
        return self.shared_parameters + self.expert_parameters * share

    def touched(self, tokens: float) -> float:
        """Returns the share of the experts that a batch of tokens reads, if each chooses freely."""
        if not self.experts:
            return 0.0
        return 1.0 - float((1.0 - self.active_experts / self.experts) ** tokens)

    def read_cache_bytes(self, context: float) -> float:
        """Returns the keys, values and states that a step reads of one request."""
        windowed = self.windowed_bytes * min(context, self.window)
        # A state is read and written.
        return self.cached_bytes * context + windowed + 2 * self.state_bytes

    @classmethod
    def of(cls, model: Model, stored_bytes: float, method: str | None) -> "Network":
        """Returns the network of a config; raises `UnknownShapeError`.

        `stored_bytes` are of all weights, as they lie on the GPUs. Without a method of quantisation
        a weight has two bytes.
        """
        if method not in _FORMATS:
            raise UnknownShapeError(f"no measurement is of weights in {method}")
        if model.latent_size is not None:
            raise UnknownShapeError("no measurement is of latent attention")
        if model.cached_layers == 0:
            raise UnknownShapeError("the network writes no text, or keeps no keys and values")
        needed = ("layers", "hidden_size", "attention_heads", "vocabulary_size", "tied_embeddings")
        missing = [name for name in needed if getattr(model, name) is None]
        if model.experts is not None and model.active_experts is None:
            missing.append("active_experts")
        tables = (model.vocabulary_size or 0) * (model.hidden_size or 0)
        if model.parameters < tables and not missing:
            raise UnknownShapeError(f"{model.parameters:,} weights are fewer than the embeddings")
        if missing:
            raise UnknownShapeError(f"`model` does not give {', '.join(missing)}")
        return cls._of(model, stored_bytes, _FORMATS[method])

    @classmethod
    def _of(cls, model: Model, stored_bytes: float, form: str) -> "Network":
        # `of` has checked these.
        layers, width, heads = model.layers or 0, model.hidden_size or 0, model.attention_heads or 0
        groups, head = model.key_value_heads or heads, model.head_size or width // (heads or 1)
        attention = width * head * (2 * heads + 2 * groups)
        table = (model.vocabulary_size or 0) * width
        # The table of embeddings is looked up, not read. The output layer is read.
        tables = table * (1 if model.tied_embeddings else 2)
        inner = model.parameters - tables
        kept = layers if model.cached_layers is None else model.cached_layers
        windowed = model.windowed_layers or 0 if model.sliding_window else 0
        a_layer = 2 * groups * head * _TWO_BYTES
        shared, in_experts = float(inner), 0.0
        if model.experts:
            shared = min(float(inner), float(layers * attention))
            in_experts = inner - shared
        plain_bytes = _TWO_BYTES * (tables + (shared if form == "mxfp4" else 0.0))
        # What is left is quantised, if anything is.
        rest = in_experts if form == "mxfp4" else float(inner)
        each = max(0.0, stored_bytes - plain_bytes) / rest if rest else 0.0
        shared_each = float(_TWO_BYTES) if form == "mxfp4" else each
        return cls(
            kind=("moe" if model.experts else "dense", form),
            layers=layers,
            width=width,
            attention_width=heads * head,
            parameters=model.parameters,
            shared_parameters=shared + table,
            shared_bytes=shared * shared_each + table * _TWO_BYTES,
            expert_parameters=in_experts,
            expert_bytes=in_experts * each,
            experts=model.experts or 0,
            active_experts=model.active_experts or 0,
            key_value_heads=groups,
            cached_bytes=(kept - windowed) * a_layer,
            windowed_bytes=windowed * a_layer,
            window=model.sliding_window or 0,
            state_bytes=float(model.state_bytes or 0),
            reuses_prompts=kept == layers,
        )
