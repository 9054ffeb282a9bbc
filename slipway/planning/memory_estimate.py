"""The use of an accelerator's memory as data, and how copies of a model lie on accelerators."""

import math
from dataclasses import dataclass

from slipway.facts.instances import Accelerator


@dataclass(frozen=True)
class MemoryEstimate:
    """Memory use in GiB, for the most heavily loaded accelerator of one copy.

    Args:
        accelerator: maker and product.
        available_gib: the part that the server may use: with vLLM the share that it allocates when
            it starts, else all.
        dtype: precision that the weights are served in, or their quantisation.
        copies_per_accelerator: copies that one accelerator holds, rounded up; 1 if it holds a part.
        copy_weights_gib: weights of the released model, once.
        weights_gib: weights on the accelerator: its part of one copy, or several copies.
        cache_gib: keys, values and states of full batches; 0 for encoders, None if unknown.
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


def layout_over_cores(accelerator: Accelerator, cores_per_copy: int, copies: int) -> Layout | None:
    """Returns the layout of copies over the cores of Neuron devices, which are taken in order.

    The cores of a device share its memory.
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


@dataclass(frozen=True)
class NeuronPlacement:
    """A model on the NeuronCores of one instance.

    Args:
        pipeline_cores: cores that one copy is spread over; 1 means data parallel.
        workers: copies of the model, each in a process of its own.
        cores_per_worker: processes never share a core.
        batch_size: sequences that the graph is traced for.
        in_flight_requests: how many requests keep all workers busy. In data parallel every
            worker's batch; in a pipeline about twelve batches for each worker.
        formula: how the numbers came about, a sentence for a reviewer.
    """

    pipeline_cores: int
    workers: int
    cores_per_worker: int
    cores: int
    batch_size: int
    in_flight_requests: int
    formula: str

    @property
    def idle_cores(self) -> int:
        """Returns the cores that no worker takes; negative where workers want too many."""
        return self.cores - self.workers * self.cores_per_worker

    @property
    def summary(self) -> str:
        """Returns workers and cores of each, for example `16 workers of 1 NeuronCore`."""
        cores = counted(self.cores_per_worker, "NeuronCore")
        return f"{counted(self.workers, 'worker')} of {cores}"


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun, in the plural where it has to be."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
