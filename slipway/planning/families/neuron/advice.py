"""Warnings about the Neuron container for a reviewer (facts: neuron). They stop nothing."""

from collections.abc import Iterator

from slipway.planning.families.neuron.deployment import Neuron
from slipway.planning.memory_estimate import counted
from slipway.planning.plan import PlanWarning


def idle_cores(neuron: Neuron) -> Iterator[PlanWarning]:
    for instance in neuron.instances:
        placement = neuron.place(instance)
        if placement is not None and placement.idle_cores > 0:
            leave = "leaves" if placement.workers == 1 else "leave"
            yield PlanWarning(
                "neuron-cores-idle",
                f"{placement.summary} {leave} {placement.idle_cores} of the {placement.cores} of "
                f"{instance.name} idle.",
            )


def workers_not_busy(neuron: Neuron) -> Iterator[PlanWarning]:
    """Warns of too few requests in flight: a pipeline has empty stages, a batch is padded."""
    serving = neuron.serving
    if serving.expected_concurrency is None:
        return
    for instance in neuron.instances:
        placement = neuron.place(instance)
        if placement is None or serving.expected_concurrency >= placement.in_flight_requests:
            continue
        expected = f"{counted(serving.expected_concurrency, 'request')} in flight"
        if placement.pipeline_cores > 1:
            yield PlanWarning(
                "neuron-pipeline-not-full",
                f"With {expected} the pipelines of {instance.name} have the latency, but not the "
                f"throughput: about {placement.in_flight_requests} fill them.",
            )
        elif serving.objective == "throughput":
            yield PlanWarning(
                "neuron-batches-not-full",
                f"With {expected} some cores of {instance.name} wait or compute padding: "
                f"{counted(placement.workers, 'worker')} with batches of {placement.batch_size} "
                f"take {placement.in_flight_requests}.",
            )
