"""Checks that exported graphs compute the same as their model.

Their steps are the simplest possible code; the serving container has its own decode loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import torch
from transformers import (
    DynamicCache,
    EncoderDecoderCache,
    GPT2LMHeadModel,
    PreTrainedModel,
    T5ForConditionalGeneration,
)

from containers.tensorrt.export.graph_files import ExportError

# The largest difference accepted between two float32 implementations of one model.
LOGIT_TOLERANCE = 2e-3
# The same for float16, as a share of the largest logit, since float16 rounds in proportion to the
# number. ONNX Runtime and PyTorch differed by at most 0.0058 over 3,300 positions. The models were
# the committed sample and random models of 2 to 12 layers with logits from 0.4 to 19. Both were
# about equally far from the float32 model.
HALF_LOGIT_TOLERANCE = 1e-2
# The same for T5, whose graphs hold more digits than its float16 model does (see `t5`). Graphs and
# model differed by at most 0.0212 over some 100 random models. The float16 model was then 0.0228
# away from its float32 version, and the graphs 0.0054.
HALF_T5_LOGIT_TOLERANCE = 3e-2

_NUMPY_TYPES: Final = {"tensor(float)": np.float32, "tensor(float16)": np.float16}

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.floating[Any]]
# Takes the token last chosen for every row, [batch, 1], and returns the next logits.
Advance: TypeAlias = Callable[[IntArray], FloatArray]
# Takes padded prompts and their mask; see `start_step_graph`.
_Start: TypeAlias = Callable[[IntArray, IntArray], tuple[FloatArray, Advance]]


class ParityError(ExportError):
    """The exported graph computes something else than the model that it was made from."""


@dataclass(frozen=True)
class Parity:
    """The extent and the result of a comparison between a graph and its model.

    Ties are tokens for which the graph would have chosen another token. The model's logits of the
    two tokens are then closer than twice the tolerance. Ties are rare in float32. In float16, where
    equal logits are common, they are about one in a thousand.
    """

    prompts: int  # each alone, and all as one padded batch
    tokens: int  # greedy tokens of the model whose logits were compared
    ties: int
    largest_logit_difference: float


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
            else np.zeros((batch, heads, 0, head_dim), dtype=_NUMPY_TYPES[cache_input.type])
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


def check_step_graph(
    path: Path, model: GPT2LMHeadModel, prompts: Sequence[Sequence[int]], *, new_tokens: int = 20
) -> Parity:
    """Checks a graph's form, and its logits along the model's own greedy tokens.

    The logits of every step, computed with the graph's own cache, are within the tolerance of the
    graph's precision, or a `ParityError` says which are not. The graph's greedy tokens are
    therefore the model's, except for ties. Prompts of unequal lengths make the check cover padding.
    The model's end token ends a row.
    """
    start = partial(start_step_graph, _open(path, model))
    return _compare(path, start, HALF_LOGIT_TOLERANCE, model, prompts, new_tokens)


def check_t5_graphs(
    encoder_path: Path,
    decoder_path: Path,
    model: T5ForConditionalGeneration,
    prompts: Sequence[Sequence[int]],
    *,
    new_tokens: int = 20,
) -> Parity:
    """Checks an encoder and a decoder step graph together; see `check_step_graph`.

    In float16, the model's `wo` layers are float32, as transformers loads them. All in float16, the
    model overflows where the graphs do not. Each prompt has at least one token.
    """
    graphs = EncoderDecoder(_open(encoder_path, model), _open(decoder_path, model))
    start = partial(
        start_encoder_decoder,
        graphs,
        start_token_id=model.generation_config.decoder_start_token_id,
    )
    return _compare(decoder_path, start, HALF_T5_LOGIT_TOLERANCE, model, prompts, new_tokens)


def compare_quantized(
    path: Path, model: GPT2LMHeadModel, prompts: Sequence[Sequence[int]], new_tokens: int
) -> Parity:
    """Compares a quantised graph with its model as `check_step_graph` does, without a tolerance.

    A `ParityError` says that a logit is no number.
    """
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    start = partial(start_step_graph, session)
    found = _compare_steps(path, start, math.inf, model, prompts, new_tokens, math.inf)
    return Parity(len(prompts), *found)


def _open(path: Path, model: PreTrainedModel) -> onnxruntime.InferenceSession:
    """Loads a graph; checks that it is well formed and of the model's precision."""
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise ParityError(f"{path} is not a valid ONNX model: {error}") from error
    options = onnxruntime.SessionOptions()
    # Not copied into a second layout for speed, since a check takes few steps.
    options.add_session_config_entry("session.disable_prepacking", "1")
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    graph_type = np.dtype(_NUMPY_TYPES[session.get_outputs()[0].type]).name
    if f"torch.{graph_type}" != str(model.dtype):
        raise ParityError(
            f"{path} computes in {graph_type}, and the model is {model.dtype}: compare it with "
            f"from_pretrained(..., dtype=torch.{graph_type})"
        )
    return session


def _compare(
    path: Path,
    start: _Start,
    half_tolerance: float,
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    new_tokens: int,
) -> Parity:
    """Compares all prompts as one padded batch, and each alone; see `check_step_graph`."""
    tokens, ties, differences = zip(
        *(
            _compare_steps(path, start, half_tolerance, model, group, new_tokens)
            for group in (prompts, *([prompt] for prompt in prompts))
        ),
        strict=True,
    )
    return Parity(len(prompts), sum(tokens), sum(ties), max(differences))


def _compare_steps(
    path: Path,
    start: _Start,
    half_tolerance: float,
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    new_tokens: int,
    tolerance: float = LOGIT_TOLERANCE,
) -> tuple[int, int, float]:
    """Compares one batch; returns its tokens, its ties and the largest difference of a logit."""
    is_encoder_decoder = model.config.is_encoder_decoder
    # As the tokenizers of both families pad.
    input_ids, attention_mask = padded(prompts, on_the_left=not is_encoder_decoder)
    # Without this, generate makes a cache of as many layers as the encoder has.
    own_cache = (
        {"past_key_values": EncoderDecoderCache(DynamicCache(), DynamicCache())}
        if is_encoder_decoder
        else {}
    )
    reference = model.generate(
        torch.from_numpy(input_ids),
        attention_mask=torch.from_numpy(attention_mask),
        do_sample=False,
        max_new_tokens=new_tokens,
        pad_token_id=model.generation_config.pad_token_id or 0,
        return_dict_in_generate=True,
        output_logits=True,
        **own_cache,
    )
    # Skips the prompt, or the decoder's first token.
    tokens = reference.sequences[:, -len(reference.logits) :].numpy()
    ties, largest_difference = 0, 0.0
    logits, advance = start(input_ids, attention_mask)
    for step, step_logits in enumerate(reference.logits):
        if step:
            logits = advance(tokens[:, step - 1 : step])
        expected = step_logits.float().numpy()
        differences = np.abs(logits.astype(np.float32) - expected).max(axis=-1)
        if model.dtype == torch.float16:
            tolerances = half_tolerance * np.abs(expected).max(axis=-1)
        else:
            tolerances = np.full(len(prompts), tolerance)
        within = differences <= tolerances  # false for NaN
        if not within.all():
            row = int(within.argmin())
            cause = "mishandles its cache" if step else "was made from other weights"
            raise ParityError(
                f"{path}: logits of token {step + 1} after the prompt {list(prompts[row])} differ "
                f"by up to {differences[row]:.2g} from the model's, and at most "
                f"{tolerances[row]:.2g} is rounding: the graph {cause}"
            )
        largest_difference = max(largest_difference, float(differences.max()))
        ties += int((logits.argmax(axis=-1) != expected.argmax(axis=-1)).sum())
    return tokens.size, ties, largest_difference
