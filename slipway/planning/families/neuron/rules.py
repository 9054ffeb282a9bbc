"""Rules about Inferentia and Trainium: cores, pipelines, compiled files (facts: neuron)."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.facts.instances import InstanceFacts, instance_types
from slipway.planning.deployment import ENCODERS, problem
from slipway.planning.encoders import encoder_batches
from slipway.planning.families.neuron.deployment import Neuron
from slipway.planning.families.neuron.hardware import (
    AN_INSTANCE_OF,
    FAMILIES_OF,
    TARGETS,
    devices,
    instance_family,
    neuron_frameworks,
)


def neuron_needs_device(neuron: Neuron) -> Iterator[Problem]:
    """The container is laid out on NeuronCores: there have to be some, and a known number."""
    for item in neuron.placements:
        instance, accelerator = item.instance, item.instance.accelerator
        if accelerator is not None and accelerator.neuron_cores is not None:
            continue
        message = (
            f"the number of NeuronCores of {instance.name} is not known, and the number of workers "
            "follows from it"
        )
        if instance.accelerator_known and (accelerator is None or accelerator.kind != "neuron"):
            wanted = "the container `neuron` needs AWS Inferentia or Trainium"
            message = f"{instance.name} has {devices(instance)}; {wanted}"
        remedy = "Choose an instance type with Neuron devices, for example `ml.inf2.xlarge`."
        yield problem(Code.NEURON_DEVICE, message, remedy, item.field)


def image_fits_generation(neuron: Neuron) -> Iterator[Problem]:
    """Refuses an image of another generation, since inf1 and later chips differ in runtime."""
    serving = neuron.serving
    for item, wanted in neuron_frameworks(neuron):
        if serving.framework != wanted:
            yield problem(
                Code.NEURON_FRAMEWORK,
                f"`framework: {serving.framework}` is for {FAMILIES_OF[serving.framework]}; "
                f"{item.instance.name} has {devices(item.instance)}",
                f"Set `framework: {wanted}`, or choose {AN_INSTANCE_OF[serving.framework]}.",
                item.field,
            )


def generation_can_be_compiled_for(neuron: Neuron) -> Iterator[Problem]:
    """Refuses Trainium2, which no compiler target names.

    Its runtime joins physical cores to logical ones. The facts count physical cores, the runtime's
    variables logical ones.
    """
    for item, _ in neuron_frameworks(neuron):
        if instance_family(item.instance) not in TARGETS:
            yield problem(
                Code.NEURON_DEVICE,
                f"{item.instance.name} has {devices(item.instance)}; models are compiled for "
                "inf1, inf2 and trn1 only",
                "Choose a type of one of these families, for example `ml.inf2.xlarge`.",
                item.field,
            )


def model_is_an_encoder(neuron: Neuron) -> Iterator[Problem]:
    """The container computes one forward pass for each text; it generates nothing."""
    family = neuron.config.model.family
    if family != "other" and not neuron.is_encoder:
        yield problem(
            Code.NEURON_ENCODER,
            f"nothing says that {family} is an encoder; the container `neuron` serves encoders: "
            f"{', '.join(ENCODERS)}, and networks with `cached_layers: 0`",
            "Choose another container, or `family: other` for an encoder that is not listed.",
            ("model", "family"),
        )


def pipeline_is_for_latency(neuron: Neuron) -> Iterator[Problem]:
    """A pipelined model cannot be served data parallel, and only inf1 has pipelines."""
    serving = neuron.serving
    if serving.pipeline_cores is None:
        return
    if serving.framework != "neuron":
        without = f"there is no NeuronCore Pipeline with `framework: {serving.framework}`"
        message, remedy = f"{without}: inf1 alone has it", "Remove `pipeline_cores`."
    elif serving.objective != "latency":
        message = (
            f"`objective: {serving.objective}` is data parallel, a copy of the model on each core; "
            "a copy in a pipeline cannot be data parallel"
        )
        remedy = "Remove `pipeline_cores`, or set `objective: latency`."
    else:
        return
    yield problem(Code.NEURON_PIPELINE, message, remedy, ("serving", "pipeline_cores"))


def pipeline_fits_cores(neuron: Neuron) -> Iterator[Problem]:
    """The runtime finds the cores missing when it loads the model, minutes into a deploy."""
    for instance in neuron.instances:
        placement = neuron.place(instance)
        if placement is not None and placement.pipeline_cores > placement.cores:
            yield problem(
                Code.NEURON_CORES,
                f"a pipeline of {placement.pipeline_cores} NeuronCores does not fit "
                f"{instance.name}, which has {placement.cores}",
                f"Use {placement.cores} or fewer, or leave it out: it then follows the number of "
                "weights.",
                ("serving", "pipeline_cores"),
            )


def workers_fit_cores(neuron: Neuron) -> Iterator[Problem]:
    """Processes never share a core: the first ones take them, and the others fail."""
    for instance in neuron.instances:
        placement = neuron.place(instance)
        if placement is None or placement.pipeline_cores > placement.cores:
            continue
        if placement.idle_cores < 0:
            wanted = placement.workers * placement.cores_per_worker
            most = placement.cores // placement.cores_per_worker
            yield problem(
                Code.NEURON_CORES,
                f"{placement.summary} take {wanted} NeuronCores; {instance.name} has "
                f"{placement.cores}",
                f"Use {most} at most, or leave it out: it is then as many as the cores carry.",
                ("serving", "workers"),
            )


def placements_agree(neuron: Neuron) -> Iterator[Problem]:
    """A model has one environment, whichever type of a pool or variant it comes to run on."""
    placed = [
        (item, placement)
        for item in neuron.placements
        if (placement := neuron.place(item.instance)) is not None
    ]
    if not placed:
        return
    first, before = placed[0]
    expected = neuron.environment_on(before)
    for item, placement in placed[1:]:
        # Of types of two generations another rule refuses one.
        if item.instance.neuron_generation != first.instance.neuron_generation:
            continue
        here = neuron.environment_on(placement)
        differing = [name for name in expected if expected[name] != here[name]]
        if differing:
            yield problem(
                Code.NEURON_POOL,
                f"{first.instance.name} takes {before.summary}, {item.instance.name} "
                f"{placement.summary}; one environment is for both: {', '.join(differing)}",
                f"Choose types with as many NeuronCores, or set {_settings(neuron)} to "
                "what all of them carry.",
                item.field,
            )


def latency_waits_for_no_batch(neuron: Neuron) -> Iterator[Problem]:
    """Refuses batches for strict latency without a pipeline: each request is computed by itself.

    (facts: neuron, inf2)
    """
    serving = neuron.serving
    if serving.batch_size == 1:
        return
    for item, wanted in neuron_frameworks(neuron):
        if serving.objective == "latency" and wanted == "neuronx":
            yield problem(
                Code.NEURON_BATCH,
                f"`objective: latency` serves every request by itself on {item.instance.name}; "
                f"batches of {serving.batch_size} would make it wait for others",
                "Remove `batch_size`, or set `objective: throughput`.",
                ("serving", "batch_size"),
            )
            return


def batches_fit(neuron: Neuron) -> Iterator[Problem]:
    """Refuses a batch that the queue never holds, and buckets that end elsewhere."""
    yield from encoder_batches(neuron)


def inf1_has_no_single_precision(neuron: Neuron) -> Iterator[Problem]:
    """The most accurate of neuron-cc's options still casts products to bf16 (facts: neuron)."""
    serving, compiling = neuron.serving, neuron.config.artifacts.compile
    if compiling is not None and (serving.framework, serving.dtype) == ("neuron", "fp32"):
        yield problem(
            Code.NEURON_FP32,
            "inf1 computes every matrix product in bf16 or fp16, and so nothing can be compiled "
            "with `dtype: fp32`",
            "Set `dtype: bf16`, or `fp16` for more digits and a smaller range.",
            ("serving", "dtype"),
        )


def release_fits_family(neuron: Neuron) -> Iterator[Problem]:
    """A compiled model runs on the family that it was compiled for."""
    release = neuron.config.artifacts.release
    if release is None or not neuron.deploys_release:
        return
    told: set[str] = set()
    for item, _ in neuron_frameworks(neuron):
        family = instance_family(item.instance)
        target = TARGETS.get(family)
        # A family that nothing is compiled for is another rule's.
        if target is None or target == release.target or family in told:
            continue
        told.add(family)
        other = f", or choose a type of {release.target}" if release.target in TARGETS else ""
        yield problem(
            Code.COMPILED_FOR_ANOTHER,
            f"the model was compiled for {release.target}, but {item.instance.name} has "
            f"{devices(item.instance)} ({target})",
            f"Compile the model for {target}{other}.",
            ("artifacts", "release", "target"),
        )


def compiled_for_one_family(neuron: Neuron) -> Iterator[Problem]:
    """Publishing compiles once: types of two families cannot run the same files."""
    if neuron.config.artifacts.compile is None:
        return
    first: InstanceFacts | None = None
    for item, wanted in neuron_frameworks(neuron):
        target = TARGETS.get(instance_family(item.instance))
        if target is None or wanted != neuron.serving.framework:
            continue
        first = first or item.instance
        before = TARGETS[instance_family(first)]
        if target != before:
            yield problem(
                Code.NEURON_POOL,
                f"{first.name} needs a model compiled for {before}, {item.instance.name} one for "
                f"{target}; there is one model for both",
                "Choose types of one family.",
                item.field,
            )


def compiles_on_cpu(neuron: Neuron) -> Iterator[Problem]:
    """No training job runs on inf1 or inf2, and the compiler needs no device (facts: neuron)."""
    compiling = neuron.config.artifacts.compile
    if compiling is None:
        return
    host = instance_types()[compiling.instance]
    if host.accelerator_known and host.accelerator is not None:
        yield problem(
            Code.COMPILE_INSTANCE,
            f"{host.name} has {host.accelerator_title}; Neuron compiles on a processor, and no "
            "training job runs on inf1 or inf2",
            "Use a CPU type with 32 GiB of memory or more, for example `ml.c5.4xlarge`.",
            ("artifacts", "compile", "instance"),
        )


def _settings(neuron: Neuron) -> str:
    serving = neuron.serving
    pipelined = serving.objective == "latency" and serving.framework == "neuron"
    return "`pipeline_cores` and `workers`" if pipelined else "`workers`"
