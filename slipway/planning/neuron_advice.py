"""Warnings about Inferentia and Trainium for a reviewer (facts: neuron). They stop nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from slipway.config.sections.serving import CustomServing, NeuronServing
from slipway.facts.images import neuron_driver_need, neuron_inference_ami
from slipway.facts.instances import InstanceFacts
from slipway.planning.neuron import aws_neuron_image, aws_neuron_sdk, counted, place
from slipway.planning.plan import PlanWarning

# The module that lists all warnings imports this module.
if TYPE_CHECKING:
    from slipway.planning.advice import Advice, Subject

# Servers that start a worker for each vCPU unless they are told otherwise.
_TORCHSERVE = "TorchServe"
_SERVERS = (_TORCHSERVE, "Multi Model Server")
_WORKERS = "SAGEMAKER_MODEL_SERVER_WORKERS"
_TORCHSERVE_PREFIX = "SAGEMAKER_TS_"
_TORCHSERVE_WORKERS = ("SAGEMAKER_TS_MIN_WORKERS", "SAGEMAKER_TS_MAX_WORKERS")


def idle_cores(subject: Subject) -> Iterator[PlanWarning]:
    """Warns of cores that are paid for but used by no worker."""
    config = subject.situation.config
    for instance in subject.situation.instances:
        placement = place(config, instance)
        if placement is not None and placement.idle_cores > 0:
            leave = "leaves" if placement.workers == 1 else "leave"
            yield PlanWarning(
                "neuron-cores-idle",
                f"{placement.summary} {leave} {placement.idle_cores} of the {placement.cores} of "
                f"{instance.name} idle.",
            )


def workers_not_busy(subject: Subject) -> Iterator[PlanWarning]:
    """Warns of too few requests in flight: a pipeline has empty stages, a batch is padded."""
    config = subject.situation.config
    serving = config.serving
    if not isinstance(serving, NeuronServing) or serving.expected_concurrency is None:
        return
    for instance in subject.situation.instances:
        placement = place(config, instance)
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


def driver_may_be_too_old(subject: Subject) -> Iterator[PlanWarning]:
    """Warns of a runtime that, by AWS's notes, may not start on the host's driver."""
    serving, host = subject.situation.config.serving, neuron_inference_ami()
    sdk = aws_neuron_sdk(serving.image_uri) if isinstance(serving, CustomServing) else None
    need = neuron_driver_need(sdk) if sdk else None
    if need is not None and need.oldest_driver is None:
        yield PlanWarning(
            "neuron-driver",
            f"The image's Neuron SDK {sdk} may not start on {host.name}, whose Neuron driver is "
            f"{host.neuron_driver}: {need.reason}. SDK 2.29.1 is the newest without that doubt.",
        )


def group_sizes_have_no_effect(subject: Subject) -> Iterator[PlanWarning]:
    """Warns of the variable of the first runtime; the present runtime reads others."""
    environment = _custom_environment(subject)
    if "NEURONCORE_GROUP_SIZES" in environment and any(_neuron_types(subject)):
        yield PlanWarning(
            "neuroncore-group-sizes",
            "NEURONCORE_GROUP_SIZES has had no effect since Neuron SDK 1.20: use "
            "NEURON_RT_NUM_CORES, the cores of each process.",
        )


def workers_follow_processors(subject: Subject) -> Iterator[PlanWarning]:
    """Warns of AWS's servers that count vCPUs, of which most types have more than NeuronCores."""
    environment, server = _custom_environment(subject), _aws_server(subject)
    if not server.startswith(_SERVERS) or _WORKERS in environment:
        return
    # Then it is one worker, which is the next function's.
    if server.startswith(_TORCHSERVE) and _torchserve_variables(environment):
        return
    for instance, cores in _neuron_types(subject):
        if instance.vcpus is not None and instance.vcpus > cores:
            yield PlanWarning(
                "neuron-workers-unset",
                f"Without {_WORKERS} the image starts a worker for each of the {instance.vcpus} "
                f"vCPUs of {instance.name}, and those beyond its {cores} NeuronCores fail: set it "
                f"to {cores} at most.",
            )


def torchserve_variables_leave_one_worker(subject: Subject) -> Iterator[PlanWarning]:
    """Warns of variables of TorchServe, with which its numbers of workers default to 1."""
    environment = _custom_environment(subject)
    given = _torchserve_variables(environment)
    missing = [name for name in _TORCHSERVE_WORKERS if name not in environment]
    if not given or not missing or not _aws_server(subject).startswith(_TORCHSERVE):
        return
    for instance, cores in _neuron_types(subject):
        yield PlanWarning(
            "torchserve-one-worker",
            f"{given[0]} is set, and so the default of {' and '.join(missing)} is 1: set "
            f"{'it' if len(missing) == 1 else 'them'} too, or most of the {cores} NeuronCores of "
            f"{instance.name} may stay idle.",
        )


def _custom_environment(subject: Subject) -> dict[str, str]:
    serving = subject.situation.config.serving
    return serving.environment if isinstance(serving, CustomServing) else {}


def _aws_server(subject: Subject) -> str:
    """Returns the server in AWS's image for Neuron; of any other image nothing is known."""
    serving = subject.situation.config.serving
    facts = aws_neuron_image(serving.image_uri) if isinstance(serving, CustomServing) else None
    return facts.server if facts else ""


def _torchserve_variables(environment: dict[str, str]) -> list[str]:
    return [name for name in environment if name.startswith(_TORCHSERVE_PREFIX)]


def _neuron_types(subject: Subject) -> Iterator[tuple[InstanceFacts, int]]:
    for instance in subject.situation.instances:
        cores = instance.accelerator.neuron_cores if instance.accelerator else None
        if cores is not None:
            yield instance, cores


ADVICE: tuple[Advice, ...] = (
    driver_may_be_too_old,
    idle_cores,
    workers_not_busy,
    group_sizes_have_no_effect,
    workers_follow_processors,
    torchserve_variables_leave_one_worker,
)
