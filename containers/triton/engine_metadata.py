"""The engines of the encoder and the decoder step: their profiles, and engine.json.

engine.json has the fields of `containers.tensorrt.engine_metadata`. Its `graph_sha256` covers both
graphs and their external data. Nothing here imports TensorRT. This module keeps to Python 3.10.
"""

from containers.tensorrt.compile.profiles import Profile, Range, batch_range
from containers.tensorrt.engine_metadata import EngineLimits


def max_past_tokens(limits: EngineLimits) -> int:
    """Returns the most tokens before a step; the last new one is never fed to the model."""
    return limits.max_new_tokens - 1


def encoder_profiles(limits: EngineLimits) -> list[Profile]:
    tokens = (batch_range(limits), _source(limits))
    return [Profile("T5's encoder", {"input_ids": tokens, "attention_mask": tokens})]


def decoder_profiles(limits: EngineLimits) -> list[Profile]:
    """Returns the profiles of the first step, which has no past, and of later steps."""
    # A model that may add only one token has no later steps, and no engine can have a profile
    # whose maximum is below its minimum.
    longest = max(1, max_past_tokens(limits))
    past = Range(0, 0, 0), Range(1, (longest + 1) // 2, longest)
    return [_step(limits, each) for each in past]


def _step(limits: EngineLimits, past: Range) -> Profile:
    batch, source = batch_range(limits), _source(limits)
    return Profile(
        "T5's decoder step",
        {
            "input_ids": (batch, Range(1, 1, 1)),
            "encoder_attention_mask": (batch, source),
            "past_key_values": (batch, None, past, None),
            "cross_key_values": (batch, None, source, None),
        },
    )


def _source(limits: EngineLimits) -> Range:
    # The optimum is the longest text, whose batches take the longest.
    return Range(1, limits.max_input_tokens, limits.max_input_tokens)
