"""The lengths of the texts that a config lets its clients send and get."""

from collections.abc import Iterator

from slipway.errors import FieldPath
from slipway.planning.deployment import Deployment

STRETCHES = {"hf_overrides", "rope_scaling"}
"""Options of vLLM that give a network more positions than its config.json has."""


def longest_texts(deployment: Deployment) -> Iterator[tuple[FieldPath, int]]:
    """Yields the field of each length, and its tokens: prompt and answer together."""
    serving = deployment.config.serving
    prompt = getattr(serving, "max_input_tokens", None)
    answer = None if deployment.is_encoder else getattr(serving, "max_new_tokens", None)
    if prompt is not None:
        yield ("serving", "max_input_tokens"), prompt + (answer or 0)
    sequence = getattr(serving, "sequence_length", None)
    if sequence is not None:
        yield ("serving", "sequence_length"), sequence
    for index, length in enumerate(getattr(serving, "sequence_lengths", None) or ()):
        yield ("serving", "sequence_lengths", index), length
