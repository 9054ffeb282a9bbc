"""T5 and FLAN-T5 as ONNX graphs: an encoder, and a decoder step with a cache.

The encoder runs once for a batch. For each decoder layer it returns the keys and values that the
decoder's cross-attention takes from the prompts. The decoder step takes them under the same names,
at every step:

| name | type | shape |
|---|---|---|
| in `input_ids` | int64 | [batch, source] |
| in `attention_mask` | int64 | [batch, source], 0 on padding |
| out `cross_key_values.{layer}.key`, `.value` | float | [batch, heads, source, head_dim] |

The inputs of the decoder step are the tokens of one step, and the keys and values of all earlier
steps. There are none at the first step, whose token is the model's `decoder_start_token_id`. Its
outputs are the logits of the last position, and the grown keys and values. One graph does the first
step and all others:

| name | type | shape |
|---|---|---|
| in `input_ids` | int64 | [batch, sequence] |
| in `encoder_attention_mask` | int64 | [batch, source], the encoder's `attention_mask` |
| in `past_key_values.{layer}.key`, `.value` | float | [batch, heads, past, head_dim] |
| in `cross_key_values.{layer}.key`, `.value` | float | [batch, heads, source, head_dim] |
| out `logits` | float | [batch, 1, vocabulary] |
| out `present.{layer}.key`, `.value` | float | [batch, heads, past+sequence, head_dim] |

Prompts of unequal length are padded on the right, as T5's tokenizer does. Padding on the left gives
the same, since positions are relative. Every prompt has at least one token, the tokenizer's end of
text. The rows of a batch begin together, so there is no mask over the past. A finished row is given
any token until the batch ends, or is left out of the next step's inputs: no row affects another.

`float` is float32 in graphs of precision fp32, and float16 in graphs of precision fp16. In fp16
graphs, weights and the inputs and outputs of every matrix product are float16. There are two
exceptions, because T5's activations outgrow float16, whose largest number is 65504. The layer
called `wo` has the largest activations; transformers keeps that layer in float32 for this reason.
The exceptions are:

- The residual stream, to which every layer adds, is float32 from the embedding to the last norm,
  and so are the norms inside. transformers does the same from the first `wo` on.
- `wo` is float16, since Turing GPUs have tensor cores for nothing wider, and NVIDIA's builder
  refuses float32 products for them. Its input is multiplied by `FEED_FORWARD_SCALE`. Its output is
  converted to float32 and multiplied by the inverse. A power of two changes no digit, except in
  numbers below 2**-6 (0.016), which lose up to 2**-17 (0.0000076).

A strongly typed TensorRT network takes all of its types from the graphs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch
from transformers import DynamicCache, EncoderDecoderCache, T5ForConditionalGeneration

from containers.jobs import onnx_files
from containers.tensorrt.export.graph_files import Precision, check_exportable, save_graph
from containers.tensorrt.stepping import LOGITS, cache_names

# With this factor, `wo` may return numbers up to 16.7 million.
FEED_FORWARD_SCALE: Final = 2.0**-8

# Example sizes. All differ, so that tracing cannot take one for another.
_BATCH, _SOURCE, _SEQUENCE, _PAST = 2, 7, 3, 5


class _PositionBias(torch.nn.Module):  # type: ignore[misc, unused-ignore]  # untyped without torch
    """The term that T5 adds to attention scores for the distance between two tokens, from a table.

    The model computes the table's index with a logarithm, which is a whole number at some distances
    and is then truncated. An implementation whose last digit differs would take another entry. This
    table therefore holds the entries themselves, by distance.
    """

    def __init__(self, stack: torch.nn.Module) -> None:
        super().__init__()
        attention = stack.block[0].layer[0].SelfAttention
        self.furthest = attention.relative_attention_max_distance
        # Beyond the furthest distance, all distances have the same entry.
        distances = torch.arange(-self.furthest, self.furthest + 1)
        buckets = attention._relative_position_bucket(
            distances,
            bidirectional=not stack.is_decoder,
            num_buckets=attention.relative_attention_num_buckets,
            max_distance=self.furthest,
        )
        table = attention.relative_attention_bias.weight.detach()[buckets]
        if stack.is_decoder:
            # The causal mask: no token sees a later one.
            table[self.furthest + 1 :] = torch.finfo(table.dtype).min
        self.register_buffer("table", table)

    def forward(self, past: int, sequence: int) -> torch.Tensor:
        """Returns [1, heads, sequence, past+sequence]."""
        keys = torch.arange(past + sequence)
        queries = torch.arange(sequence) + past
        distances = (keys[None, :] - queries[:, None]).clamp(-self.furthest, self.furthest)
        entries = torch.nn.functional.embedding(distances + self.furthest, self.table)
        return entries.permute(2, 0, 1)[None]


class _HalfFeedForward(torch.nn.Module):  # type: ignore[misc, unused-ignore]  # untyped without torch
    """A feed-forward layer in float16 whose output may exceed float16's largest number."""

    def __init__(self, layer: torch.nn.Module) -> None:
        super().__init__()
        self.norm = layer.layer_norm
        self.dense = layer.DenseReluDense
        self.is_gated = hasattr(self.dense, "wi_0")
        weight = self.dense.wo.weight.detach().to(torch.float16)
        self.wo = torch.nn.Parameter(weight, requires_grad=False)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Adds the layer's output to the residual stream, which is float32."""
        normed = self.norm(hidden)
        if self.is_gated:
            gate = self.dense.act(self.dense.wi_0(normed))
            # Scaled before the product, since the product can overflow as well.
            inner = gate * (self.dense.wi_1(normed) * FEED_FORWARD_SCALE)
        else:
            inner = self.dense.act(self.dense.wi(normed)) * FEED_FORWARD_SCALE
        scaled = torch.nn.functional.linear(inner, self.wo)
        return hidden + scaled.float() * (1 / FEED_FORWARD_SCALE)


class _Stack(torch.nn.Module):  # type: ignore[misc, unused-ignore]  # untyped without torch
    """The layers of an encoder or decoder; the caller passes the summed masks and biases."""

    def __init__(self, stack: torch.nn.Module) -> None:
        super().__init__()
        self.embedding = stack.embed_tokens
        self.blocks = stack.block
        self.norm = stack.final_layer_norm
        is_half = self.embedding.weight.dtype == torch.float16
        self.feed_forwards = torch.nn.ModuleList(
            _HalfFeedForward(block.layer[-1]) if is_half else block.layer[-1]
            for block in stack.block
        )

    def forward(
        self,
        input_ids: torch.Tensor,
        bias: torch.Tensor,
        cross_mask: torch.Tensor | None = None,
        cache: EncoderDecoderCache | None = None,
    ) -> torch.Tensor:
        """Returns the residual stream after the last layer; a decoder's cache grows in place."""
        hidden = self.embedding(input_ids).float()
        for block, feed_forward in zip(self.blocks, self.feed_forwards, strict=True):
            hidden = block.layer[0](hidden, position_bias=bias, past_key_values=cache)[0]
            if cross_mask is not None:
                hidden = block.layer[1](
                    hidden,
                    # Marks cross-attention only: the keys and values come from the cache.
                    key_value_states=hidden,
                    position_bias=cross_mask,
                    past_key_values=cache,
                )[0]
            hidden = feed_forward(hidden)
        return hidden


def _additive(attention_mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Returns the term added to scores [batch, heads, queries, source] to hide padding."""
    return ((1 - attention_mask).to(dtype) * torch.finfo(dtype).min)[:, None, None, :]


class _Encoder(torch.nn.Module):  # type: ignore[misc, unused-ignore]  # untyped without torch
    """The encoder, and the projections of each decoder layer that depend only on the encoder."""

    def __init__(self, model: T5ForConditionalGeneration) -> None:
        super().__init__()
        self.stack = _Stack(model.encoder)
        self.position_bias = _PositionBias(model.encoder)
        self.cross_attentions = torch.nn.ModuleList(
            block.layer[1].EncDecAttention for block in model.decoder.block
        )
        self.dtype = model.dtype
        self.head_dim = model.config.d_kv

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Returns keys and values alternately, layer by layer."""
        bias = self.position_bias(0, input_ids.shape[1]) + _additive(attention_mask, self.dtype)
        states = self.stack.norm(self.stack(input_ids, bias))
        heads = (*input_ids.shape, -1, self.head_dim)
        return tuple(
            projection(states).view(heads).transpose(1, 2)
            for attention in self.cross_attentions
            for projection in (attention.k, attention.v)
        )


class _DecoderStep(torch.nn.Module):  # type: ignore[misc, unused-ignore]  # untyped without torch
    """The decoder and the head, with both caches as plain tensors."""

    def __init__(self, model: T5ForConditionalGeneration) -> None:
        super().__init__()
        self.stack = _Stack(model.decoder)
        self.position_bias = _PositionBias(model.decoder)
        self.head = model.lm_head
        self.dtype = model.dtype
        self.scale = model.config.d_model**-0.5 if model.config.scale_decoder_outputs else 1.0

    def forward(
        self,
        input_ids: torch.Tensor,
        encoder_attention_mask: torch.Tensor,
        past_key_values: list[torch.Tensor],
        cross_key_values: list[torch.Tensor],
    ) -> tuple[torch.Tensor, ...]:
        """Computes one step; both caches alternate keys and values, layer by layer."""
        own, cross = (
            DynamicCache(list(zip(flat[0::2], flat[1::2], strict=True)))
            for flat in (past_key_values, cross_key_values)
        )
        cache = EncoderDecoderCache(own, cross)
        bias = self.position_bias(past_key_values[0].shape[2], input_ids.shape[1])
        mask = _additive(encoder_attention_mask, self.dtype)
        last = self.stack.norm(self.stack(input_ids, bias, mask, cache)[:, -1:])
        if self.scale != 1.0:
            last = last * self.scale
        present = [states for layer in own.layers for states in (layer.keys, layer.values)]
        return (self.head(last), *present)


@contextmanager
def _plain_attention(model: T5ForConditionalGeneration) -> Iterator[None]:
    """Makes the model compute attention with products and a softmax while it is traced."""
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(before)


def export_t5_encoder(
    model: T5ForConditionalGeneration, path: Path, *, precision: Precision = "fp32"
) -> None:
    """Writes the encoder graph of a T5 model, weights included; see `export_gpt2_step`.

    The weights of `wo` may be float32 in either precision, as transformers loads them.
    """
    check_exportable(model, "t5", precision)
    axes = {0: "batch", 1: "source"}
    with _plain_attention(model):
        graph = onnx_files.trace(
            _Encoder(model),
            example=(
                torch.zeros(_BATCH, _SOURCE, dtype=torch.int64),
                torch.ones(_BATCH, _SOURCE, dtype=torch.int64),
            ),
            inputs=["input_ids", "attention_mask"],
            outputs=cache_names("cross_key_values", model.config.num_decoder_layers),
            dynamic_shapes={"input_ids": axes, "attention_mask": axes},
        )
    save_graph(graph, path, {})


def export_t5_decoder_step(
    model: T5ForConditionalGeneration, path: Path, *, precision: Precision = "fp32"
) -> None:
    """Writes the decoder step graph of a T5 model; see `export_t5_encoder`."""
    check_exportable(model, "t5", precision)
    config = model.config
    layers = config.num_decoder_layers

    def cache(length: int) -> list[torch.Tensor]:
        shape = (_BATCH, config.num_heads, length, config.d_kv)
        return [torch.zeros(shape, dtype=model.dtype) for _ in range(2 * layers)]

    def cache_axes(name: str) -> list[dict[int, Any]]:
        return [{0: "batch", 2: name}] * (2 * layers)

    with _plain_attention(model):
        graph = onnx_files.trace(
            _DecoderStep(model),
            example=(
                torch.zeros(_BATCH, _SEQUENCE, dtype=torch.int64),
                torch.ones(_BATCH, _SOURCE, dtype=torch.int64),
                cache(_PAST),
                cache(_SOURCE),
            ),
            inputs=[
                "input_ids",
                "encoder_attention_mask",
                *cache_names("past_key_values", layers),
                *cache_names("cross_key_values", layers),
            ],
            outputs=[LOGITS, *cache_names("present", layers)],
            dynamic_shapes={
                "input_ids": {0: "batch", 1: "sequence"},
                "encoder_attention_mask": {0: "batch", 1: "source"},
                "past_key_values": cache_axes("past"),
                "cross_key_values": cache_axes("source"),
            },
        )
    save_graph(graph, path, {"present.": 2})
