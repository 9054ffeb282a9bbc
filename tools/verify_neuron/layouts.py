"""The ways to place a BERT-base on NeuronCores for which AWS has published figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from containers.neuron.settings import PIPELINE_LANES
from slipway.planning.families.neuron.placement import pipeline_depth

SEQUENCE_LENGTH = 128
DTYPE = "bf16"
_PARAMETERS = 108_893_186

PUBLISHED: Mapping[tuple[str, str], str] = {
    ("inf1.6xlarge", "pipeline"): "1793, p95 6.9 ms (AWS's blog); "
    "2009-2080, p50 5.7-5.9 ms (Neuron SDK 1.17-2.20)",
    ("inf1.6xlarge", "batch-6"): "3880, p95 25.8 ms (AWS's blog)",
    ("inf1.xlarge", "batch-6"): "985, p95 24.9 ms (AWS's blog); "
    "1181, p50 40.6 ms (Neuron SDK 2.20)",
    ("inf2.xlarge", "batch-8"): "2674, p50 6.0 ms (Neuron SDK 2.26-2.27)",
    ("inf2.xlarge", "batch-1"): "1998, p50 1.0 ms (Neuron SDK 2.26-2.27)",
}
"""Sentences per second and latency by instance type and layout, as in benchmarks/neuron.md."""


@dataclass(frozen=True)
class Layout:
    """One way to place copies of the model, whose graph takes a batch of sentences.

    `cores` are the NeuronCores of each copy, and `workers` the copies. The name is its folder's
    too.
    """

    family: str
    name: str
    batch_size: int
    cores: int
    workers: int

    @property
    def loads(self) -> Sequence[tuple[int, int]]:
        """Returns the loads of benchmarks/neuron.md: sentences of a request, and clients."""
        if self.cores > 1:
            return (1, PIPELINE_LANES * self.workers), (1, 1)
        single = (1, self.batch_size * self.workers)
        return (single,) if self.batch_size == 1 else (single, (self.batch_size, self.workers))


def layouts_of(family: str, cores: int) -> Sequence[Layout]:
    """Returns the layouts that a family can have.

    A pipeline takes all cores, up to the number that AWS's formula gives a BERT-base.
    """
    if family == "inf1":
        depth = min(cores, pipeline_depth(_PARAMETERS))
        pipeline = Layout(family, "pipeline", 1, depth, cores // depth)
        return pipeline, Layout(family, "batch-6", 6, 1, cores)
    return tuple(Layout(family, f"batch-{size}", size, 1, cores) for size in (8, 1))
