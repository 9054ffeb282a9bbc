"""Estimates the use of an accelerator's memory, part by part.

Weights are exact, except for a few that tensor parallelism leaves on every accelerator (layer
norms, at times embeddings). `quantization.py` says how exact quantised weights are. The key/value
cache is sized for the largest batch of the longest requests; it needs the shape of the network. A
layer with a sliding window keeps no more than the window of a request. State spaces and linear
attention keep a state of a fixed size of each request. The rest is CUDA's context or Neuron's
runtime, activations, and the allocator's slack. It is a flat assumption, which no measurement of
Slipway confirms yet.
"""

import math
from collections.abc import Iterator

from slipway.config.sections.model import Model
from slipway.errors import FieldPath
from slipway.facts.instances import InstanceFacts
from slipway.planning.deployment import Deployment
from slipway.planning.memory_estimate import Layout, MemoryEstimate
from slipway.planning.quantization import BYTES, stored_weights

# Weights of one byte are computed with, and cached, in two.
_LEAST_CACHED_BYTES = 2
_GIB = 2**30
OVERHEAD_GIB = 1.0


def estimate(deployment: Deployment, instance: InstanceFacts) -> MemoryEstimate | None:
    """Estimates what the model takes on an instance type, once for each type of a deployment.

    Each family's `memory_layout`, `cached_tokens` and `memory_share` say what is assumed of its
    container. The estimate is None without accelerators of a known memory, without `dtype`, and
    where the container cannot run on them.
    """
    known = deployment.memory_estimates
    if instance.name not in known:
        known[instance.name] = _estimate(deployment, instance)
    return known[instance.name]


def _estimate(deployment: Deployment, instance: InstanceFacts) -> MemoryEstimate | None:
    accelerator, dtype = instance.accelerator, deployment.dtype
    if accelerator is None or accelerator.memory_gib is None or dtype is None:
        return None
    layout = deployment.memory_layout(instance, accelerator)
    if layout is None:
        return None
    value_bytes = 1 if deployment.caches_in_fp8 else max(BYTES[dtype], _LEAST_CACHED_BYTES)
    cache = _cache_gib(deployment, layout, value_bytes)
    weights = stored_weights(deployment, dtype)
    copy_weights = weights.size_bytes / _GIB
    return MemoryEstimate(
        accelerator=accelerator.product,
        memory_gib=accelerator.memory_gib,
        available_gib=round(accelerator.memory_gib * deployment.memory_share, 3),
        dtype=weights.precision,
        accelerators_per_copy=layout.per_copy,
        copies=layout.copies,
        copies_per_accelerator=layout.copies_on_one,
        copy_weights_gib=round(copy_weights, 3),
        weights_gib=round(copy_weights * layout.weights_share, 3),
        cache_gib=None if isinstance(cache, str) else round(cache, 3),
        cache_unknown=cache if isinstance(cache, str) else None,
        overhead_gib=OVERHEAD_GIB,
    )


def _cache_gib(deployment: Deployment, layout: Layout, value_bytes: int) -> float | str:
    """Returns keys, values and states on one accelerator in GiB, or why they are not known.

    In a decoder every token of the prompt and of the answer leaves a key and a value in each layer.
    T5 has two stacks. Its decoder keeps keys and values of the answer's tokens (self-attention). It
    also keeps, computed once, keys and values of the encoder's output at every token of the prompt
    (cross-attention). Both have the same size, so the sum over tokens is the same. An encoder alone
    keeps none.

    Divided by tensor parallelism, an accelerator holds one head at least: fewer heads than parts
    are held more than once. Latent attention keeps one vector, which each accelerator holds. States
    are divided evenly.
    """
    model, tokens = deployment.config.model, deployment.cached_tokens
    layers = model.layers if model.cached_layers is None else model.cached_layers
    if tokens == 0 or (layers == 0 and model.state_bytes is None):
        return 0.0
    if isinstance(tokens, str):
        return tokens
    longest = max((each for _, each in longest_texts(deployment)), default=tokens)
    states = (model.state_bytes or 0) * tokens / longest / layout.tensor / layout.pipeline
    if layers == 0:
        return states * layout.caches_on_one / _GIB
    layer_values = _values_per_token(model, layout.tensor)
    if layer_values is None or layers is None:
        return "the network's shape is not given"
    windowed = model.windowed_layers or 0
    window = model.sliding_window or longest
    # As many whole layers as leave the cache of all of them.
    whole = layers - windowed * (1 - min(1.0, window / longest))
    parts = math.ceil(layers / layout.pipeline) / layers
    cache = layer_values * whole * parts * tokens * value_bytes
    return (cache + states) * layout.caches_on_one / _GIB


def _values_per_token(model: Model, parts: int) -> int | None:
    """Numbers that one layer keeps of one token on an accelerator: keys and values, or a vector."""
    heads, size = model.attention_heads, model.head_size
    if model.latent_size is not None:
        return model.latent_size
    if size is None and heads is not None and model.hidden_size is not None:
        size = model.hidden_size // heads
    if size is None or heads is None:
        return None
    return 2 * size * math.ceil((model.key_value_heads or heads) / parts)


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
