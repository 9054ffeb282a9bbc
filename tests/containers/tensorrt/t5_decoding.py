"""Sessions of T5's exported graphs, and T5's own texts to compare with. Needs torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnxruntime

from containers.tensorrt import export
from tests.containers.tensorrt.t5_models import T5Graphs
from tests.support.groups import load

if TYPE_CHECKING:
    from transformers import T5ForConditionalGeneration

torch = load("torch", group="torch")
transformers = load("transformers", group="torch")

NEW_TOKENS = 24


def sessions(graphs: T5Graphs) -> export.EncoderDecoder:
    return export.EncoderDecoder(
        *(
            onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
            for path in (graphs.encoder, graphs.decoder)
        )
    )


def generate(
    model: T5ForConditionalGeneration, given: list[list[int]], **arguments: Any
) -> export.IntArray:
    input_ids, attention_mask = export.right_padded(given, 0)
    output = model.generate(
        torch.from_numpy(input_ids),
        attention_mask=torch.from_numpy(attention_mask),
        do_sample=False,
        **{"max_new_tokens": NEW_TOKENS, **arguments},
        # Else a cache of as many layers as the encoder has.
        past_key_values=transformers.EncoderDecoderCache(
            transformers.DynamicCache(), transformers.DynamicCache()
        ),
    )
    return output[:, 1:].numpy()
