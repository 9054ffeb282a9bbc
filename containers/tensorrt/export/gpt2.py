"""GPT-2 as the ONNX step graph that the TensorRT container runs.

One graph does prefill and decoding. Its inputs are the tokens of one step, and the keys and values
of all earlier steps (none at prefill). Its outputs are the logits of the last position, and the
grown keys and values, which the caller feeds to the next step:

| name | type | shape |
|---|---|---|
| in `input_ids` | int64 | [batch, sequence] |
| in `attention_mask` | int64 | [batch, past+sequence], 0 on padding |
| in `position_ids` | int64 | [batch, sequence] |
| in `past_key_values.{layer}.key`, `.value` | float | [batch, heads, past, head_dim] |
| out `logits` | float | [batch, 1, vocabulary] |
| out `present.{layer}.key`, `.value` | float | [batch, heads, past+sequence, head_dim] |

`float` is float32 in a graph of precision fp32, and float16 in a graph of precision fp16. A graph
of fp16 has float16 weights, and float16 between all operators too, as the Hugging Face model has
after `.half()`. Only the sums inside a layer norm are float32 (ONNX's `stash_type`). A strongly
typed TensorRT network takes all of its types from the graph.

Prompts of unequal length are padded on the left; positions count from a prompt's first real token.
"""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import DynamicCache, GPT2LMHeadModel

from containers.jobs import onnx_files
from containers.tensorrt.export.graph_files import (
    ExportError,
    Precision,
    check_exportable,
    save_graph,
)
from containers.tensorrt.stepping import LOGITS, STEP_INPUTS, cache_names


class _StepModule(torch.nn.Module):  # type: ignore[misc, unused-ignore]  # untyped without torch
    """The model with its cache as plain tensors, the only form that an ONNX graph can hold."""

    def __init__(self, model: GPT2LMHeadModel) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        position_ids: torch.Tensor,
        past_key_values: list[torch.Tensor],
    ) -> tuple[torch.Tensor, ...]:
        """Computes one step; `past_key_values` alternates keys and values, layer by layer."""
        pairs = list(zip(past_key_values[0::2], past_key_values[1::2], strict=True))
        output = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            past_key_values=DynamicCache(ddp_cache_data=pairs),
            use_cache=True,
            logits_to_keep=1,
        )
        present = [
            states
            for layer in output.past_key_values.layers
            for states in (layer.keys, layer.values)
        ]
        return (output.logits, *present)


def export_gpt2_step(model: GPT2LMHeadModel, path: Path, *, precision: Precision = "fp32") -> None:
    """Writes the step graph of a GPT-2 language model, weights included; see `save_graph`.

    The precision is the type of the model's weights, of the cache and of the logits. The ONNX
    Runtime back end serves fp32; fp16 is for TensorRT engines. An `ExportError` refuses other
    models.
    """
    check_exportable(model, "gpt2", precision)
    config = model.config
    if config.add_cross_attention:
        raise ExportError(
            "cannot export a gpt2 model with add_cross_attention: the step graph has no encoder"
        )
    layers, heads = config.n_layer, config.n_head
    head_dim = config.n_embd // heads
    batch, sequence, past = 2, 3, 5
    cache = [
        torch.zeros(batch, heads, past, head_dim, dtype=model.dtype) for _ in range(2 * layers)
    ]
    tokens_axes = {0: "batch", 1: "sequence"}
    graph = onnx_files.trace(
        _StepModule(model),
        example=(
            torch.zeros(batch, sequence, dtype=torch.int64),
            torch.ones(batch, past + sequence, dtype=torch.int64),
            torch.arange(past, past + sequence).repeat(batch, 1),
            cache,
        ),
        inputs=[*STEP_INPUTS, *cache_names("past_key_values", layers)],
        outputs=[LOGITS, *cache_names("present", layers)],
        dynamic_shapes={
            "input_ids": tokens_axes,
            "attention_mask": {0: "batch", 1: "past_and_sequence"},
            "position_ids": tokens_axes,
            "past_key_values": [{0: "batch", 2: "past"}] * len(cache),
        },
    )
    save_graph(graph, path, {"attention_mask": 1, "present.": 2})
