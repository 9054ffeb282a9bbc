"""Estimates the use of an accelerator's memory, part by part.

Weights are exact, except for a few that tensor parallelism leaves on every accelerator (layer
norms, at times embeddings). `quantization.py` says how exact quantised weights are. The key/value
cache is sized for the largest batch of the longest requests; it needs the shape of the network. The
rest is CUDA's context or Neuron's runtime, activations, and the allocator's slack. It is a flat
assumption, which no measurement of Slipway confirms yet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slipway.config.sections.model import Model
from slipway.facts.instances import Accelerator, InstanceFacts
from slipway.planning.quantization import BYTES, stored_weights

# Its families lay out the model.
if TYPE_CHECKING:
    from slipway.planning.situation import Situation

# Weights of one byte are computed with, and cached, in two.
_LEAST_CACHED_BYTES = 2
_GIB = 2**30
OVERHEAD_GIB = 1.0


@dataclass(frozen=True)
class MemoryEstimate:
    """Memory use in GiB, for the most heavily loaded accelerator of one copy.

    Args:
        accelerator: maker and product.
        memory_gib: memory of one accelerator.
        available_gib: the part that the server may use: with vLLM the share that it allocates when
            it starts, else all.
        dtype: precision that the weights are served in, or their quantisation.
        accelerators_per_copy: accelerators that one copy of the model is spread over, evenly.
        copies: copies of the model on the instance.
        copies_per_accelerator: copies that one accelerator holds, rounded up; 1 if it holds a part.
        copy_weights_gib: weights of the released model, once.
        weights_gib: weights on the accelerator: its part of one copy, or several copies.
        cache_gib: keys and values of full batches; 0 for encoders, None if unknown.
        cache_unknown: why `cache_gib` is None, as half a sentence.
        overhead_gib: assumption for everything else.
    """

    accelerator: str
    memory_gib: float
    available_gib: float
    dtype: str
    accelerators_per_copy: int
    copies: int
    copies_per_accelerator: int
    copy_weights_gib: float
    weights_gib: float
    cache_gib: float | None
    cache_unknown: str | None
    overhead_gib: float

    @property
    def total_gib(self) -> float:
        """Returns the sum of the known parts."""
        return self.weights_gib + (self.cache_gib or 0.0) + self.overhead_gib

    @property
    def room(self) -> str:
        """Returns the memory of one accelerator, for people: `16.0 GiB (NVIDIA T4)`."""
        text = f"{self.memory_gib:.1f} GiB ({self.accelerator})"
        if self.available_gib < self.memory_gib:
            text += f", of which vLLM takes {100 * self.available_gib / self.memory_gib:.0f} %"
        return text

    @property
    def parts(self) -> str:
        """Returns the sum, for people: weights with their precision and layout, cache, the rest."""
        layout = self.dtype
        if self.copies_per_accelerator > 1:
            layout += f", {self.copies_per_accelerator} copies"
        if self.accelerators_per_copy > 1:
            layout += f", a copy over {self.accelerators_per_copy} accelerators"
        cache = f"unknown ({self.cache_unknown})"
        if self.cache_gib is not None:
            cache = f"{self.cache_gib:.1f}"
        return (
            f"weights {self.weights_gib:.1f} ({layout}), cache {cache}, assumed for the rest "
            f"{self.overhead_gib:.1f}"
        )


@dataclass(frozen=True)
class Layout:
    """How copies lie on accelerators.

    Args:
        per_copy: accelerators that one copy is spread over.
        copies: copies on the instance.
        copies_on_one: copies that one accelerator holds, rounded up; 1 if it holds a part.
        weights_share: part of one copy's weights on the fullest accelerator; above 1 where it holds
            several copies.
        tensor: parts that heads are divided into.
        pipeline: parts that layers are divided into.
        caches_on_one: caches of a full batch on the fullest accelerator.
    """

    per_copy: int = 1
    copies: int = 1
    copies_on_one: int = 1
    weights_share: float = 1.0
    tensor: int = 1
    pipeline: int = 1
    caches_on_one: float = 1.0


def estimate(situation: Situation, instance: InstanceFacts) -> MemoryEstimate | None:
    """Estimates what the model takes on an instance type, once for each type of a situation.

    Each family's `memory_layout`, `cached_tokens` and `memory_share` say what is assumed of its
    container.

    Returns:
        The estimate. It is None without accelerators, if their memory is not known, and for a
        container without `dtype`. It is also None if a container cannot run on them, which a rule
        reports.
    """
    known = situation.memory_estimates
    if instance.name not in known:
        known[instance.name] = _estimate(situation, instance)
    return known[instance.name]


def _estimate(situation: Situation, instance: InstanceFacts) -> MemoryEstimate | None:
    config, accelerator = situation.config, instance.accelerator
    dtype = config.serving.dtype
    if accelerator is None or accelerator.memory_gib is None or dtype is None:
        return None
    layout = situation.memory_layout(instance, accelerator)
    if layout is None:
        return None
    cache = _cache_gib(situation, layout, max(BYTES[dtype], _LEAST_CACHED_BYTES))
    weights = stored_weights(situation, dtype)
    copy_weights = weights.size_bytes / _GIB
    return MemoryEstimate(
        accelerator=accelerator.product,
        memory_gib=accelerator.memory_gib,
        available_gib=round(accelerator.memory_gib * situation.memory_share, 3),
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


def layout_over_cores(accelerator: Accelerator, cores_per_copy: int, copies: int) -> Layout | None:
    """Returns the layout of copies over the cores of Neuron devices, which are taken in order.

    The cores of a device share its memory.

    Args:
        accelerator: the devices.
        cores_per_copy: cores that one copy is spread over.
        copies: copies on the instance.
    """
    per_device = accelerator.neuron_cores_per_device
    if per_device is None:
        return None
    cores = min(per_device, copies * cores_per_copy)
    share = cores / cores_per_copy
    return Layout(
        per_copy=math.ceil(cores_per_copy / per_device),
        copies=copies,
        copies_on_one=math.ceil(share),
        weights_share=share,
        tensor=cores_per_copy,
        caches_on_one=cores,
    )


def _cache_gib(situation: Situation, layout: Layout, value_bytes: int) -> float | str:
    """Returns the keys and values on one accelerator in GiB, or why they are not known.

    In a decoder every token of the prompt and of the answer leaves a key and a value in each layer.
    T5 has two stacks. Its decoder keeps keys and values of the answer's tokens (self-attention). It
    also keeps, computed once, keys and values of the encoder's output at every token of the prompt
    (cross-attention). Both have the same size, so the sum over tokens is the same. An encoder alone
    keeps none.

    Divided by tensor parallelism, an accelerator holds one head at least: fewer heads than parts
    are held more than once.
    """
    model, tokens = situation.config.model, situation.cached_tokens
    if tokens == 0:
        return 0.0
    if isinstance(tokens, str):
        return tokens
    layer_values = _values_per_token_and_head(model)
    if layer_values is None or model.layers is None or model.attention_heads is None:
        return "the network's shape is not given"
    heads = math.ceil((model.key_value_heads or model.attention_heads) / layout.tensor)
    layers = math.ceil(model.layers / layout.pipeline)
    numbers = layer_values * layers * heads * tokens * layout.caches_on_one
    return numbers * value_bytes / _GIB


def _values_per_token_and_head(model: Model) -> int | None:
    """Numbers that attention keeps of one token in one layer and head: a key and a value."""
    if model.head_size is not None:
        return 2 * model.head_size
    if model.hidden_size is None or model.attention_heads is None:
        return None
    return 2 * (model.hidden_size // model.attention_heads)
