"""The layout of a model on the NeuronCores of an instance.

Throughput: a copy of the model on every core (data parallel), each with batches. Strict latency:
one copy spread over several cores (NeuronCore Pipeline), which inf1 alone can do.

Pure: config and facts in, numbers out. The rules of this folder say whether they fit.
"""

from slipway.config.sections.serving.neuron import NeuronServing
from slipway.facts.instances import InstanceFacts
from slipway.planning.memory_estimate import NeuronPlacement, counted

# AWS's formula for the depth of a pipeline: 4 * round(weights / 20 million), and 4 at least.
_WEIGHTS_PER_STEP = 20_000_000
_CORES_PER_STEP = 4
# Requests in flight that fill one pipeline of AWS's BERT-base example.
_PIPELINE_REQUESTS = 12


def pipeline_depth(weights: int) -> int:
    """Returns the cores that AWS's formula gives one pipeline, before any instance limits it.

    It is 0 for less than about 10 million weights. Halves are rounded to the even number.
    """
    return _CORES_PER_STEP * round(weights / _WEIGHTS_PER_STEP)


def place(
    serving: NeuronServing, parameters: int, instance: InstanceFacts
) -> NeuronPlacement | None:
    """Returns a model's layout on an instance type; None without a known number of NeuronCores.

    Values of the config are taken as they are, also where they do not fit.
    """
    accelerator = instance.accelerator
    cores = accelerator.neuron_cores if accelerator else None
    if accelerator is None or cores is None:
        return None
    if serving.objective == "throughput":
        return _data_parallel(
            serving, instance, cores, serving.batch_size, "`objective: throughput`"
        )
    if not accelerator.has_core_pipeline:
        why = (
            f"`objective: latency` on {accelerator.neuron_generation}, which has no NeuronCore "
            "Pipeline,"
        )
        # A request that waits for others to fill a batch is what the objective rules out.
        return _data_parallel(serving, instance, cores, 1, why)
    depth, source = _depth(serving, parameters, instance.name, cores)
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
