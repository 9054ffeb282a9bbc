"""How a model is laid out on the NeuronCores of an instance, and what its container is told.

Throughput: a copy of the model on every core (data parallel), each with batches. Strict latency:
one copy spread over several cores (NeuronCore Pipeline), which inf1 alone can do.

Pure: config and facts in, numbers out. Whether they fit is for the rules to say
(`slipway.planning.rules.neuron`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from slipway.config.schema import ModelConfig
from slipway.config.sections.serving import NeuronServing
from slipway.facts.images import ImageFacts, frameworks, image, regions, versions
from slipway.facts.instances import InstanceFacts

# inf1's cores; all later ones take the `neuronx` images and have no pipeline.
PIPELINE_GENERATION = "NeuronCore-v1"
# AWS's formula for the depth of a pipeline: 4 * round(weights / 20 million), and 4 at least.
_WEIGHTS_PER_STEP = 20_000_000
_CORES_PER_STEP = 4
# Requests in flight that fill one pipeline of AWS's BERT-base example.
_PIPELINE_REQUESTS = 12


# Family of instances to what is compiled for it. trn1n differs from trn1 in its network alone.
TARGETS: Mapping[str, str] = {"inf1": "inf1", "inf2": "inf2", "trn1": "trn1", "trn1n": "trn1"}


@dataclass(frozen=True)
class NeuronPlacement:
    """A model on the NeuronCores of one instance.

    Args:
        pipeline_cores: cores that one copy is spread over; 1 means data parallel.
        workers: copies of the model, each in a process of its own.
        cores_per_worker: cores that one process takes; processes never share a core.
        cores: of the instance.
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
        """Cores that no worker takes; negative where the workers want more than there are."""
        return self.cores - self.workers * self.cores_per_worker

    @property
    def summary(self) -> str:
        """Workers and cores of each, for example `16 workers of 1 NeuronCore`."""
        cores = counted(self.cores_per_worker, "NeuronCore")
        return f"{counted(self.workers, 'worker')} of {cores}"


def pipeline_depth(weights: int) -> int:
    """Returns the cores that AWS's formula gives one pipeline, before any instance limits it.

    Args:
        weights: parameters of the model.

    Returns:
        0 for less than about 10 million weights. Halves are rounded to the even number.
    """
    return _CORES_PER_STEP * round(weights / _WEIGHTS_PER_STEP)


def instance_family(instance: InstanceFacts) -> str:
    """Returns the family of a type, for example `inf2`."""
    return instance.name.split(".")[1]


def sequence_lengths(serving: NeuronServing) -> tuple[int, ...]:
    """Returns the tokens of each graph, ascending."""
    return serving.sequence_lengths or (serving.sequence_length,)


def place(config: ModelConfig, instance: InstanceFacts) -> NeuronPlacement | None:
    """Lays a model out on an instance type.

    What the config says is taken as it is, also where it does not fit.

    Returns:
        The placement; None for other containers, for types without Neuron devices, and where it is
        not known how many cores a type has.
    """
    serving, accelerator = config.serving, instance.accelerator
    cores = accelerator.neuron_cores if accelerator else None
    if not isinstance(serving, NeuronServing) or accelerator is None or cores is None:
        return None
    if serving.objective == "throughput":
        return _data_parallel(
            serving, instance, cores, serving.batch_size, "`objective: throughput`"
        )
    if accelerator.neuron_generation != PIPELINE_GENERATION:
        why = (
            f"`objective: latency` on {accelerator.neuron_generation}, which has no NeuronCore "
            "Pipeline,"
        )
        # A request that waits for others to fill a batch is what the objective rules out.
        return _data_parallel(serving, instance, cores, 1, why)
    depth, source = _depth(serving, config.model.parameters, instance.name, cores)
    if depth == 1:
        return _data_parallel(serving, instance, cores, serving.batch_size, source)
    workers = serving.workers or max(1, cores // depth)
    return NeuronPlacement(
        pipeline_cores=depth,
        workers=workers,
        cores_per_worker=depth,
        cores=cores,
        batch_size=serving.batch_size,
        in_flight_requests=_PIPELINE_REQUESTS * workers * serving.batch_size,
        formula=f"{source}; {counted(workers, 'worker')} with a pipeline of {depth} NeuronCores "
        f"each on the {cores} of {instance.name}.",
    )


def container_environment(config: ModelConfig, instance: InstanceFacts) -> dict[str, str]:
    """Returns the variables of the Neuron container.

    The serving core reads the sequences of one forward pass as SLIPWAY_MAX_BATCH_SIZE. No
    SAGEMAKER_TS_* is among them: any of those makes TorchServe start a single worker.

    Raises:
        ValueError: no placement is known; the rules refuse such a config first.
    """
    serving, placement = config.serving, place(config, instance)
    if not isinstance(serving, NeuronServing) or placement is None:
        raise ValueError(f"{config.name} has no placement on the NeuronCores of {instance.name}")
    return {
        # Of each worker's process, which inherits it. NEURONCORE_GROUP_SIZES has no effect.
        "NEURON_RT_NUM_CORES": str(placement.cores_per_worker),
        # Unset it would be the number of vCPUs, which most types have more of than cores.
        "SAGEMAKER_MODEL_SERVER_WORKERS": str(placement.workers),
        "SLIPWAY_DTYPE": serving.dtype,
        "SLIPWAY_MAX_BATCH_DELAY_MILLISECONDS": str(serving.max_batch_delay_milliseconds),
        "SLIPWAY_MAX_BATCH_SIZE": str(placement.batch_size),
        "SLIPWAY_MAX_QUEUE_LENGTH": str(serving.max_queue_length),
        "SLIPWAY_PIPELINE_CORES": str(placement.pipeline_cores),
        "SLIPWAY_REQUEST_TIMEOUT_SECONDS": str(serving.request_timeout_seconds),
        "SLIPWAY_SEQUENCE_LENGTH": str(serving.sequence_length),
        "SLIPWAY_TASK": serving.task,
        "SLIPWAY_WORKERS": str(placement.workers),
    }


def aws_neuron_image(image_uri: str) -> ImageFacts | None:
    """Returns what is known of the repository that an image of AWS's for Neuron comes from.

    Args:
        image_uri: address in ECR, with its tag or digest.

    Returns:
        The newest image of that repository, whatever its tag is; None for images that are not AWS's
        or not for Neuron.
    """
    registry, _, path = image_uri.partition("/")
    account, _, _, region, *_ = registry.split(".")
    repository = path.partition("@")[0].partition(":")[0]
    # DJL's repository holds images for GPUs too, and has another name than its frameworks.
    if repository not in frameworks() or region not in regions():
        return None
    known = [image(repository, version, region) for version in versions(repository)]
    if known[-1].accelerator not in ("neuron", "neuronx"):
        return None
    return known[-1] if any(facts.account == account for facts in known) else None


def aws_neuron_sdk(image_uri: str) -> str | None:
    """Returns the Neuron SDK that the tag of AWS's image names; None where there is no such tag."""
    facts = aws_neuron_image(image_uri)
    named = re.search(r":.*-sdk(\d+\.\d+\.\d+)", image_uri)
    return named[1] if facts is not None and named else None


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun, in the plural where it has to be."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _data_parallel(
    serving: NeuronServing, instance: InstanceFacts, cores: int, batch_size: int, why: str
) -> NeuronPlacement:
    workers = serving.workers or cores
    return NeuronPlacement(
        pipeline_cores=1,
        workers=workers,
        cores_per_worker=1,
        cores=cores,
        batch_size=batch_size,
        in_flight_requests=workers * batch_size,
        formula=f"{why} is data parallel with batches of {batch_size}: "
        f"{counted(workers, 'worker')} with 1 NeuronCore each on the {cores} of {instance.name}.",
    )


def _depth(serving: NeuronServing, weights: int, name: str, cores: int) -> tuple[int, str]:
    """Returns the cores of one pipeline, and where the number comes from."""
    if serving.pipeline_cores is not None:
        return serving.pipeline_cores, f"`pipeline_cores: {serving.pipeline_cores}`"
    formula = pipeline_depth(weights)
    depth = min(cores, max(_CORES_PER_STEP, formula))
    source = (
        f"{_CORES_PER_STEP} x round({weights:,} weights / {_WEIGHTS_PER_STEP:,}) = {formula} "
        "NeuronCores"
    )
    if depth > formula:
        source += f", raised to the least, {depth}"
    elif depth < formula:
        source += f", cut to the {depth} that {name} has"
    return depth, source
