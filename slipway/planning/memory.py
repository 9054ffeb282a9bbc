"""What a model takes of an accelerator's memory: an estimate, part by part.

Weights are exact. The key/value cache is that of the largest batch of the longest requests; it
needs the shape of the network. The rest (CUDA's context, activations, the allocator's slack) is a
flat assumption, which no measurement of ours stands behind yet.
"""

from __future__ import annotations

from dataclasses import dataclass

from slipway.config.schema import ModelConfig
from slipway.config.sections.model import Model
from slipway.config.sections.serving import TensorRTServing
from slipway.facts.instances import InstanceFacts

_BYTES = {"fp32": 4, "fp16": 2}
_GIB = 2**30
OVERHEAD_GIB = 1.0


@dataclass(frozen=True)
class MemoryEstimate:
    """Use of one accelerator's memory, in GiB.

    Args:
        accelerator: product.
        available_gib: memory of one.
        weights_gib: of the released model, in the precision it is served in.
        cache_gib: keys and values of a full batch; None where the network's shape is not given.
        overhead_gib: assumed for everything else.
    """

    accelerator: str
    available_gib: float
    weights_gib: float
    cache_gib: float | None
    overhead_gib: float

    @property
    def total_gib(self) -> float:
        """Sum of the parts that are known."""
        return self.weights_gib + (self.cache_gib or 0.0) + self.overhead_gib


def estimate(config: ModelConfig, instance: InstanceFacts) -> MemoryEstimate | None:
    """Estimates what the model takes on an instance type.

    Returns:
        The estimate; None for containers whose use of memory is not known, and where the type's
        accelerator memory is not.
    """
    serving, accelerator = config.serving, instance.accelerator
    if not isinstance(serving, TensorRTServing) or accelerator is None:
        return None
    if accelerator.memory_gib is None:
        return None
    size = _BYTES[serving.dtype]
    values = _cached_values_per_token(config.model)
    tokens = serving.max_batch_size * (serving.max_input_tokens + serving.max_new_tokens)
    return MemoryEstimate(
        accelerator=accelerator.product,
        available_gib=accelerator.memory_gib,
        weights_gib=round(config.model.parameters * size / _GIB, 3),
        cache_gib=None if values is None else round(values * tokens * size / _GIB, 3),
        overhead_gib=OVERHEAD_GIB,
    )


def _cached_values_per_token(model: Model) -> int | None:
    """Numbers that attention keeps of one token: a key and a value, in every layer and head."""
    if model.layers is None or model.hidden_size is None or model.attention_heads is None:
        return None
    head_size = model.head_size or model.hidden_size // model.attention_heads
    heads = model.key_value_heads or model.attention_heads
    return 2 * model.layers * heads * head_size
