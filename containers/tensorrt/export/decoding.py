"""Steps of exported graphs with ONNX Runtime, in the simplest possible code.

Exports are checked with these steps. The serving container has its own decode loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import onnxruntime

NUMPY_TYPES: Final = {"tensor(float)": np.float32, "tensor(float16)": np.float16}

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.floating[Any]]
# Takes the token last chosen for every row, [batch, 1], and returns the next logits.
Advance: TypeAlias = Callable[[IntArray], FloatArray]


@dataclass(frozen=True)
class EncoderDecoder:
    encoder: onnxruntime.InferenceSession
    decoder: onnxruntime.InferenceSession


def padded(prompts: Sequence[Sequence[int]], *, on_the_left: bool) -> tuple[IntArray, IntArray]:
    """Returns token ids and attention mask, both [batch, longest prompt], padded with token 0."""
    longest = max(len(prompt) for prompt in prompts)
    input_ids = np.zeros((len(prompts), longest), dtype=np.int64)
    attention_mask = np.zeros_like(input_ids)
    for row, prompt in enumerate(prompts):
        start = longest - len(prompt) if on_the_left else 0
        input_ids[row, start : start + len(prompt)] = prompt
        attention_mask[row, start : start + len(prompt)] = 1
    return input_ids, attention_mask


def run_step(
    session: onnxruntime.InferenceSession,
    input_ids: IntArray,
    attention_mask: IntArray,
    past: Sequence[FloatArray] = (),
) -> tuple[FloatArray, list[FloatArray]]:
    """Runs one step of a decoder-only graph; `past` is empty at prefill.

    `input_ids` are this step's tokens, [batch, sequence]. `attention_mask`, [batch, past+sequence],
    covers past and present. Returns the last position's logits, [batch, vocabulary], and the cache
    for the next step, both in the graph's precision.
    """
    sequence = input_ids.shape[1]
    positions = np.maximum(attention_mask.cumsum(axis=1) - 1, 0)[:, -sequence:]
    feeds = {
        "input_ids": input_ids,
        "attention_mask": attention_mask,
        "position_ids": positions,
    }
    return _run_with_cache(session, feeds, past)


def run_encoder(
    session: onnxruntime.InferenceSession, input_ids: IntArray, attention_mask: IntArray
) -> dict[str, FloatArray]:
    """Runs an encoder graph once; returns its outputs by name, which a decoder step takes."""
    names = [output.name for output in session.get_outputs()]
    feeds = {"input_ids": input_ids, "attention_mask": attention_mask}
    return dict(zip(names, session.run(names, feeds), strict=True))


def run_decoder_step(
    session: onnxruntime.InferenceSession,
    input_ids: IntArray,
    encoder_attention_mask: IntArray,
    cross_key_values: dict[str, FloatArray],
    past: Sequence[FloatArray] = (),
) -> tuple[FloatArray, list[FloatArray]]:
    """Runs one step of a decoder graph, as `run_step`.

    `encoder_attention_mask` is the encoder's mask, [batch, source], and `cross_key_values` the
    outputs of `run_encoder`.
    """
    feeds = {
        "input_ids": input_ids,
        "encoder_attention_mask": encoder_attention_mask,
        **cross_key_values,
    }
    return _run_with_cache(session, feeds, past)


def _run_with_cache(
    session: onnxruntime.InferenceSession,
    feeds: dict[str, npt.NDArray[Any]],
    past: Sequence[FloatArray],
) -> tuple[FloatArray, list[FloatArray]]:
    batch = feeds["input_ids"].shape[0]
    cache_inputs = [i for i in session.get_inputs() if i.name.startswith("past_key_values.")]
    for index, cache_input in enumerate(cache_inputs):
        _, heads, _, head_dim = cache_input.shape
        feeds[cache_input.name] = (
            past[index]
            if past
            else np.zeros((batch, heads, 0, head_dim), dtype=NUMPY_TYPES[cache_input.type])
        )
    logits, *present = session.run(None, feeds)
    return logits[:, -1], present


def start_step_graph(
    session: onnxruntime.InferenceSession, input_ids: IntArray, attention_mask: IntArray
) -> tuple[FloatArray, Advance]:
    """Runs padded prompts; returns their logits and a function that runs the next step."""
    logits, past = run_step(session, input_ids, attention_mask)

    def advance(tokens: IntArray) -> FloatArray:
        nonlocal attention_mask, past
        attention_mask = np.pad(attention_mask, ((0, 0), (0, 1)), constant_values=1)
        logits, past = run_step(session, tokens, attention_mask, past)
        return logits

    return logits, advance


def start_encoder_decoder(
    graphs: EncoderDecoder, input_ids: IntArray, attention_mask: IntArray, start_token_id: int
) -> tuple[FloatArray, Advance]:
    """Runs the encoder and the first step; returns its logits and a function for the next step."""
    cross = run_encoder(graphs.encoder, input_ids, attention_mask)
    first = np.full((len(input_ids), 1), start_token_id, dtype=np.int64)
    logits, past = run_decoder_step(graphs.decoder, first, attention_mask, cross)

    def advance(tokens: IntArray) -> FloatArray:
        nonlocal past
        logits, past = run_decoder_step(graphs.decoder, tokens, attention_mask, cross, past)
        return logits

    return logits, advance
