"""Rules that the containers of encoders share: batch, queue and sequence lengths."""

from collections.abc import Iterator
from typing import Any

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.planning.deployment import Deployment, problem


def encoder_batches(deployment: Deployment) -> Iterator[Problem]:
    """Yields the problems with batches and buckets of an encoder that its container refuses.

    It does not start with a queue in which no batch could fill, and expects its longest graph to be
    of `sequence_length`.
    """
    serving: Any = deployment.config.serving
    if serving.max_queue_length < serving.batch_size:
        yield problem(
            Code.NEURON_BATCH,
            f"a queue of {serving.max_queue_length} never holds a batch of {serving.batch_size}",
            "Raise `max_queue_length` or lower `batch_size`.",
            ("serving", "max_queue_length"),
        )
    if serving.sequence_lengths is None:
        return
    lengths = serving.sequence_lengths
    shown = ", ".join(map(str, lengths))
    if list(lengths) != sorted(set(lengths)):
        yield problem(
            Code.NEURON_LENGTHS,
            f"sequence lengths must ascend, and {shown} do not",
            f"Write `sequence_lengths: {sorted(set(lengths))}`.",
            ("serving", "sequence_lengths"),
        )
    elif lengths[-1] != serving.sequence_length:
        yield problem(
            Code.NEURON_LENGTHS,
            f"the longest of {shown} is not `sequence_length: {serving.sequence_length}`, which is "
            "the longest text that the endpoint takes",
            f"End the list with {serving.sequence_length}, or change `sequence_length`.",
            ("serving", "sequence_lengths"),
        )
