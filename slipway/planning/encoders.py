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
        message = f"sequence lengths must ascend, and {shown} do not"
        remedy = f"Write `sequence_lengths: {sorted(set(lengths))}`."
    elif (longest := serving.sequence_length) != lengths[-1]:
        message = (
            f"the longest of {shown} is not `sequence_length: {longest}`, which is the longest "
            "text that the endpoint takes"
        )
        remedy = f"End the list with {longest}, or change `sequence_length`."
    else:
        return
    yield problem(Code.NEURON_LENGTHS, message, remedy, ("serving", "sequence_lengths"))
