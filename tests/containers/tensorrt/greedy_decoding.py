"""Greedy decoding over exported graphs, to compare with transformers' `generate`."""

from collections.abc import Sequence

import numpy as np
import onnxruntime

from containers.tensorrt.export.decoding import (
    Advance,
    EncoderDecoder,
    FloatArray,
    IntArray,
    start_encoder_decoder,
    start_step_graph,
)


def greedy_tokens(
    session: onnxruntime.InferenceSession,
    prompts: Sequence[Sequence[int]],
    *,
    new_tokens: int,
    end_token_id: int | None = None,
    pad_token_id: int = 0,
    cached: bool = True,
) -> IntArray:
    """Decodes greedily with a decoder-only graph, as `generate(do_sample=False)` does.

    Args:
        session: The step graph.
        prompts: Token ids per prompt, of any lengths.
        new_tokens: The most tokens to generate.
        end_token_id: The token after which a row is finished; None generates all tokens.
        pad_token_id: Fills rows that finished before others.
        cached: False recomputes the whole sequence at every step.

    Returns:
        The generated tokens without the prompts, [batch, at most new_tokens].
    """
    logits, advance = start_step_graph(session, prompts, pad_token_id, cached=cached)
    return _greedy(logits, advance, new_tokens, end_token_id, pad_token_id)


def encoder_decoder_greedy_tokens(
    graphs: EncoderDecoder,
    prompts: Sequence[Sequence[int]],
    *,
    new_tokens: int,
    end_token_id: int | None = None,
    pad_token_id: int = 0,
    start_token_id: int = 0,
    cached: bool = True,
    on_the_left: bool = False,
) -> IntArray:
    """Decodes greedily with an encoder and a decoder graph; see `greedy_tokens`.

    Args:
        graphs: The encoder and the decoder of one model.
        prompts: Token ids per prompt, at least one each.
        new_tokens: The most tokens to generate.
        end_token_id: The token after which a row is finished; None generates all tokens.
        pad_token_id: Pads the prompts, and fills rows that finished before others.
        start_token_id: The decoder's first token, which is not among the returned tokens.
        cached: False recomputes the whole sequence at every step.
        on_the_left: Whether prompts are padded on the left instead of the right.
    """
    logits, advance = start_encoder_decoder(
        graphs, prompts, pad_token_id, start_token_id, cached=cached, on_the_left=on_the_left
    )
    return _greedy(logits, advance, new_tokens, end_token_id, pad_token_id)


def _greedy(
    logits: FloatArray,
    advance: Advance,
    new_tokens: int,
    end_token_id: int | None,
    pad_token_id: int,
) -> IntArray:
    finished = np.zeros(logits.shape[0], dtype=bool)
    generated = np.zeros((logits.shape[0], 0), dtype=np.int64)
    while True:
        chosen = np.where(finished, pad_token_id, logits.argmax(axis=-1))[:, None]
        finished |= chosen[:, 0] == end_token_id
        generated = np.concatenate([generated, chosen], axis=1)
        if generated.shape[1] >= new_tokens or finished.all():
            return generated
        logits = advance(chosen)
