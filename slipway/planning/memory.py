"""Estimates the use of an accelerator's memory, part by part.

Weights are exact, except for a few that tensor parallelism leaves on every accelerator (layer
norms, at times embeddings). The key/value cache is sized for the largest batch of the longest
requests; it needs the shape of the network. The rest is CUDA's context or Neuron's runtime,
activations, and the allocator's slack. It is a flat assumption, which no measurement of Slipway
confirms yet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from slipway.config.schema import ModelConfig
from slipway.config.sections.model import Model
from slipway.config.sections.serving import (
    CustomServing,
    LmiServing,
    NeuronServing,
    TensorRTServing,
    TritonServing,
)
from slipway.facts.images import UnknownImageError
from slipway.facts.instances import Accelerator, InstanceFacts
from slipway.planning.lmi import lmi_setup
from slipway.planning.lmi_handlers import brings_handler
from slipway.planning.neuron import place, sequence_lengths

_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "int8": 1, "fp8": 1}
# Weights of one byte are computed with, and cached, in two.
_LEAST_CACHED_BYTES = 2
_ENCODERS = ("bert", "distilbert", "roberta", "xlm_roberta")
_GIB = 2**30
OVERHEAD_GIB = 1.0
# containers/tensorrt/runtimes/tensorrt/cache.py: ARENAS
_TENSORRT_CACHES = 3
# vLLM's own default of `gpu_memory_utilization`, and lmi_options.json's.
_VLLM_SHARE = 0.9


@dataclass(frozen=True)
class MemoryEstimate:
    """Memory use in GiB, for the most heavily loaded accelerator of one copy.

    Args:
        accelerator: maker and product.
        memory_gib: memory of one accelerator.
        available_gib: the part that the server may use: with vLLM the share that it allocates when
            it starts, else all.
        dtype: precision that the weights are served in.
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
class _Layout:
    """How copies lie on accelerators.

    `weights_share` is the part of one copy's weights that the fullest accelerator holds, which is
    above 1 where it holds several copies; `tensor` and `pipeline` are the parts that heads and
    layers are divided into.
    """

    per_copy: int = 1
    copies: int = 1
    copies_on_one: int = 1
    weights_share: float = 1.0
    tensor: int = 1
    pipeline: int = 1
    caches_on_one: float = 1.0


def estimate(config: ModelConfig, instance: InstanceFacts) -> MemoryEstimate | None:
    """Estimates what the model takes on an instance type.

    What is assumed of each container:

    - `tensorrt`: one copy on one GPU. Its cache, in the engine's precision, exists three times. A
      step reads one and writes another, and texts about to join the batch have the third.
    - `triton`: `instance_group_count` copies on each GPU. Each has weights and a cache of its own,
      as the processes of the Python backend do that own the decode loop.
    - `lmi`: a copy over `tensor_parallel_degree` x `pipeline_parallel_degree` accelerators, and as
      many copies as the instance has room for, none sharing an accelerator. On Neuron devices both
      degrees count cores, and the cores of a device share its memory. vLLM allocates
      `gpu_memory_utilization` of each GPU (default 0.9) when it starts. Its cache is the part that
      weights and activations leave, and requests wait if it is full. So `cache_gib` is what the
      configured batch would want of that share, not what is allocated.
    - `neuron`: a copy for each graph of each worker, each core holding its part. The cores of a
      device share its memory, and workers fill one device before the next. Weights are kept in
      `dtype`, which the compiler casts fp32 to.
    - `custom`: weights in `dtype`, spread over all accelerators. Slipway does not know how the
      server uses them, but it cannot use more than all.

    Returns:
        The estimate. It is None without accelerators, if their memory is not known, and for a
        custom container without `dtype`. It is also None if a container cannot run on them, which a
        rule reports.
    """
    serving, accelerator = config.serving, instance.accelerator
    if accelerator is None or accelerator.memory_gib is None or serving.dtype is None:
        return None
    layout = _layout(config, instance, accelerator)
    if layout is None:
        return None
    weight_bytes = _BYTES[serving.dtype]
    cache = _cache_gib(config, layout, max(weight_bytes, _LEAST_CACHED_BYTES))
    copy_weights = config.model.parameters * weight_bytes / _GIB
    share = _vllm_share(config)
    return MemoryEstimate(
        accelerator=accelerator.product,
        memory_gib=accelerator.memory_gib,
        available_gib=round(accelerator.memory_gib * share, 3),
        dtype=serving.dtype,
        accelerators_per_copy=layout.per_copy,
        copies=layout.copies,
        copies_per_accelerator=layout.copies_on_one,
        copy_weights_gib=round(copy_weights, 3),
        weights_gib=round(copy_weights * layout.weights_share, 3),
        cache_gib=None if isinstance(cache, str) else round(cache, 3),
        cache_unknown=cache if isinstance(cache, str) else None,
        overhead_gib=OVERHEAD_GIB,
    )


def _layout(
    config: ModelConfig, instance: InstanceFacts, accelerator: Accelerator
) -> _Layout | None:
    serving, count = config.serving, accelerator.count
    if isinstance(serving, CustomServing):
        return _Layout(per_copy=count, weights_share=1 / count, tensor=count)
    if isinstance(serving, NeuronServing):
        placement = place(config, instance)
        if placement is None:
            return None
        layout = _over_cores(accelerator, placement.pipeline_cores, placement.workers)
        graphs = len(sequence_lengths(serving))
        return layout and replace(
            layout,
            copies=layout.copies * graphs,
            copies_on_one=layout.copies_on_one * graphs,
            weights_share=layout.weights_share * graphs,
        )
    if isinstance(serving, LmiServing):
        tensor, pipeline = serving.tensor_parallel_degree, serving.pipeline_parallel_degree
        parts = tensor * pipeline
        if accelerator.kind == "neuron":
            copies = max(1, (accelerator.neuron_cores or 0) // parts)
            return _over_cores(accelerator, parts, copies)
        if accelerator.kind == "gpu":
            return _Layout(
                per_copy=parts,
                copies=max(1, count // parts),
                weights_share=1 / parts,
                tensor=tensor,
                pipeline=pipeline,
            )
        return None
    if not accelerator.is_nvidia_gpu:
        return None
    if isinstance(serving, TritonServing):
        group = serving.instance_group_count
        return _Layout(
            copies=group * count, copies_on_one=group, weights_share=group, caches_on_one=group
        )
    return _Layout(caches_on_one=_TENSORRT_CACHES)


def _over_cores(accelerator: Accelerator, cores_per_copy: int, copies: int) -> _Layout | None:
    """Lays copies over the cores of Neuron devices, which are taken in order."""
    per_device = accelerator.neuron_cores_per_device
    if per_device is None:
        return None
    cores = min(per_device, copies * cores_per_copy)
    share = cores / cores_per_copy
    return _Layout(
        per_copy=math.ceil(cores_per_copy / per_device),
        copies=copies,
        copies_on_one=math.ceil(share),
        weights_share=share,
        tensor=cores_per_copy,
        caches_on_one=cores,
    )


def _cache_gib(config: ModelConfig, layout: _Layout, value_bytes: int) -> float | str:
    """Returns the keys and values on one accelerator in GiB, or why they are not known.

    In a decoder every token of the prompt and of the answer leaves a key and a value in each layer.
    T5 has two stacks. Its decoder keeps keys and values of the answer's tokens (self-attention). It
    also keeps, computed once, keys and values of the encoder's output at every token of the prompt
    (cross-attention). Both have the same size, so the sum over tokens is the same. An encoder alone
    keeps none.

    Divided by tensor parallelism, an accelerator holds one head at least: fewer heads than parts
    are held more than once.
    """
    model, serving = config.model, config.serving
    if isinstance(serving, CustomServing):
        return "the container is your own"
    if isinstance(serving, NeuronServing) or model.family in _ENCODERS:
        return 0.0
    tokens = _cached_tokens(serving)
    if isinstance(tokens, str):
        return tokens
    layer_values = _values_per_token_and_head(model)
    if layer_values is None or model.layers is None or model.attention_heads is None:
        return "the network's shape is not given"
    heads = math.ceil((model.key_value_heads or model.attention_heads) / layout.tensor)
    layers = math.ceil(model.layers / layout.pipeline)
    numbers = layer_values * layers * heads * tokens * layout.caches_on_one
    return numbers * value_bytes / _GIB


def _cached_tokens(serving: TensorRTServing | LmiServing | TritonServing) -> int | str:
    """Returns the tokens of a full batch of the longest requests, or what is missing for that."""
    sequences: int | None = serving.max_batch_size
    if isinstance(serving, LmiServing) and _rolls(serving):
        sequences = serving.max_rolling_batch_size
    if sequences is None:
        return "`max_rolling_batch_size` is not given"
    if serving.max_input_tokens is None or serving.max_new_tokens is None:
        return "`max_input_tokens` and `max_new_tokens` are not both given"
    return sequences * (serving.max_input_tokens + serving.max_new_tokens)


def _values_per_token_and_head(model: Model) -> int | None:
    """Numbers that attention keeps of one token in one layer and head: a key and a value."""
    if model.head_size is not None:
        return 2 * model.head_size
    if model.hidden_size is None or model.attention_heads is None:
        return None
    return 2 * (model.hidden_size // model.attention_heads)


def _rolls(serving: LmiServing) -> bool:
    """Whether requests join and leave a batch token by token."""
    try:
        return lmi_setup(serving).rolls
    except UnknownImageError:
        # A rule says that there is no such image.
        return False


def _allocates_ahead(serving: LmiServing) -> bool:
    """Whether vLLM runs the model, or lmi-dist, which is made of it.

    djl-lmi takes one of them where the config does not say.
    """
    if serving.framework == "djl-neuronx":
        return False
    if serving.rolling_batch in (None, "auto"):
        # Batches of the server's own turn the rolling batch off.
        return (
            serving.framework == "djl-lmi"
            and not brings_handler(serving)
            and serving.max_batch_size == 1
        )
    return serving.rolling_batch in ("vllm", "lmi-dist")


def _vllm_share(config: ModelConfig) -> float:
    """Share of a GPU's memory that the server may take: 1, or what vLLM is told to allocate."""
    serving = config.serving
    if (
        not isinstance(serving, LmiServing)
        or config.model.family in _ENCODERS
        or not _allocates_ahead(serving)
    ):
        return 1.0
    value = serving.options.get("gpu_memory_utilization", _VLLM_SHARE)
    try:
        share = float(value)
    except ValueError:
        share = 0.0
    # What is no share is the options' rule to refuse.
    return share if 0 < share <= 1 else _VLLM_SHARE
