"""Rules about Inferentia and Trainium: cores, pipelines, compiled files (facts: neuron)."""

from __future__ import annotations

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.config.sections.serving import CustomServing, NeuronServing
from slipway.errors import Problem
from slipway.facts.images import neuron_driver_need, neuron_inference_ami
from slipway.facts.instances import InstanceFacts
from slipway.planning.neuron import (
    PIPELINE_GENERATION,
    TARGETS,
    aws_neuron_image,
    aws_neuron_sdk,
    container_environment,
    instance_family,
    place,
)
from slipway.planning.rules.situation import Placement, Situation, problem

_ENCODERS = ("bert", "distilbert", "roberta", "xlm_roberta", "other")
_FAMILIES_OF = {"neuron": "inf1", "neuronx": "inf2 and Trainium"}
_AN_INSTANCE_OF = {
    "neuron": "an inf1 type, for example `ml.inf1.xlarge`",
    "neuronx": "an inf2 or trn1 type, for example `ml.inf2.xlarge`",
}


def neuron_needs_device(situation: Situation) -> Iterator[Problem]:
    """The container is laid out on NeuronCores: there have to be some, and a known number."""
    if not isinstance(situation.config.serving, NeuronServing):
        return
    for item in situation.placements:
        instance, accelerator = item.instance, item.instance.accelerator
        if accelerator is not None and accelerator.neuron_cores is not None:
            continue
        if instance.accelerator_known and (accelerator is None or accelerator.kind != "neuron"):
            message = (
                f"{instance.name} has {_devices(instance)}; the container `neuron` needs AWS "
                "Inferentia or Trainium"
            )
        else:
            message = (
                f"the number of NeuronCores of {instance.name} is not known, and the number of "
                "workers follows from it"
            )
        yield problem(
            Code.NEURON_DEVICE,
            message,
            "Choose an instance type with Neuron devices, for example `ml.inf2.xlarge`.",
            item.field,
        )


def image_fits_generation(situation: Situation) -> Iterator[Problem]:
    """Refuses an image of another generation, since inf1 and later chips differ in runtime."""
    serving = situation.config.serving
    if not isinstance(serving, NeuronServing):
        return
    for item, wanted in _frameworks(situation):
        if serving.framework != wanted:
            yield problem(
                Code.NEURON_FRAMEWORK,
                f"`framework: {serving.framework}` is for {_FAMILIES_OF[serving.framework]}; "
                f"{item.instance.name} has {_devices(item.instance)}",
                f"Set `framework: {wanted}`, or choose {_AN_INSTANCE_OF[serving.framework]}.",
                item.field,
            )


def aws_image_fits_hardware(situation: Situation) -> Iterator[Problem]:
    """SageMaker takes AWS's image for one chip on any other, where its container then fails."""
    serving = situation.config.serving
    facts = aws_neuron_image(serving.image_uri) if isinstance(serving, CustomServing) else None
    if facts is None:
        return
    right = [item for item, wanted in _frameworks(situation) if wanted == facts.accelerator]
    for item in situation.placements:
        if item not in right and item.instance.accelerator_known:
            yield problem(
                Code.NEURON_FRAMEWORK,
                f"AWS's image {facts.repository} is for {_FAMILIES_OF[facts.accelerator]}; "
                f"{item.instance.name} has {_devices(item.instance)}",
                f"Choose {_AN_INSTANCE_OF[facts.accelerator]}, or another image.",
                item.field,
            )


def driver_runs_the_sdk(situation: Situation) -> Iterator[Problem]:
    """A Neuron runtime may refuse an older driver, and the driver is the host's."""
    serving, host = situation.config.serving, neuron_inference_ami()
    if not isinstance(serving, CustomServing) or host.neuron_driver is None:
        return
    sdk = aws_neuron_sdk(serving.image_uri)
    need = neuron_driver_need(sdk) if sdk else None
    if need is None or need.oldest_driver is None:
        return
    if not _older(host.neuron_driver, need.oldest_driver):
        return
    yield problem(
        Code.NEURON_DRIVER,
        f"AWS's image has Neuron SDK {sdk}, whose runtime {need.runtime_library} needs Neuron "
        f"driver {need.oldest_driver}; the newest host image, {host.name}, has "
        f"{host.neuron_driver}",
        "Choose an image of an older SDK, 2.29.1 for example.",
        ("serving", "image_uri"),
    )


def generation_can_be_compiled_for(situation: Situation) -> Iterator[Problem]:
    """Refuses Trainium2, which no compiler target names.

    Its runtime joins physical cores to logical ones. The facts count physical cores, the runtime's
    variables logical ones.
    """
    if not isinstance(situation.config.serving, NeuronServing):
        return
    for item, _ in _frameworks(situation):
        if instance_family(item.instance) not in TARGETS:
            yield problem(
                Code.NEURON_DEVICE,
                f"{item.instance.name} has {_devices(item.instance)}; models are compiled for "
                "inf1, inf2 and trn1 only",
                "Choose a type of one of these families, for example `ml.inf2.xlarge`.",
                item.field,
            )


def model_is_an_encoder(situation: Situation) -> Iterator[Problem]:
    """The container computes one forward pass for each text; it generates nothing."""
    family = situation.config.model.family
    if isinstance(situation.config.serving, NeuronServing) and family not in _ENCODERS:
        yield problem(
            Code.NEURON_ENCODER,
            f"{family} generates text; the container `neuron` serves encoders: "
            f"{', '.join(_ENCODERS[:-1])}",
            "Choose another container, or `family: other` for an encoder that is not listed.",
            ("model", "family"),
        )


def pipeline_is_for_latency(situation: Situation) -> Iterator[Problem]:
    """A pipelined model cannot be served data parallel, and only inf1 has pipelines."""
    serving = situation.config.serving
    if not isinstance(serving, NeuronServing) or serving.pipeline_cores is None:
        return
    if serving.framework != "neuron":
        yield problem(
            Code.NEURON_PIPELINE,
            f"there is no NeuronCore Pipeline with `framework: {serving.framework}`: inf1 alone "
            "has it",
            "Remove `pipeline_cores`.",
            ("serving", "pipeline_cores"),
        )
    elif serving.objective != "latency":
        yield problem(
            Code.NEURON_PIPELINE,
            f"`objective: {serving.objective}` is data parallel, a copy of the model on each core; "
            "a copy in a pipeline cannot be data parallel",
            "Remove `pipeline_cores`, or set `objective: latency`.",
            ("serving", "pipeline_cores"),
        )


def pipeline_fits_cores(situation: Situation) -> Iterator[Problem]:
    """The runtime finds the cores missing when it loads the model, minutes into a deploy."""
    for instance in situation.instances:
        placement = place(situation.config, instance)
        if placement is not None and placement.pipeline_cores > placement.cores:
            yield problem(
                Code.NEURON_CORES,
                f"a pipeline of {placement.pipeline_cores} NeuronCores does not fit "
                f"{instance.name}, which has {placement.cores}",
                f"Use {placement.cores} or fewer, or leave it out: it then follows the number of "
                "weights.",
                ("serving", "pipeline_cores"),
            )


def workers_fit_cores(situation: Situation) -> Iterator[Problem]:
    """Processes never share a core: the first ones take them, and the others fail."""
    for instance in situation.instances:
        placement = place(situation.config, instance)
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


def placements_agree(situation: Situation) -> Iterator[Problem]:
    """A model has one environment, whichever type of a pool or variant it comes to run on."""
    config = situation.config
    placed = [
        (item, placement)
        for item in situation.placements
        if (placement := place(config, item.instance)) is not None
    ]
    if not placed:
        return
    first, before = placed[0]
    expected = container_environment(config, first.instance)
    for item, placement in placed[1:]:
        # Of types of two generations another rule refuses one.
        if _generation(item.instance) != _generation(first.instance):
            continue
        here = container_environment(config, item.instance)
        differing = [name for name in expected if expected[name] != here[name]]
        if differing:
            yield problem(
                Code.NEURON_POOL,
                f"{first.instance.name} takes {before.summary}, {item.instance.name} "
                f"{placement.summary}; one environment is for both: {', '.join(differing)}",
                f"Choose types with as many NeuronCores, or set {_settings(config.serving)} to "
                "what all of them carry.",
                item.field,
            )


def latency_waits_for_no_batch(situation: Situation) -> Iterator[Problem]:
    """Refuses batches for strict latency without a pipeline: each request is computed by itself.

    (facts: neuron, inf2)
    """
    serving = situation.config.serving
    if not isinstance(serving, NeuronServing) or serving.batch_size == 1:
        return
    for item, wanted in _frameworks(situation):
        if serving.objective == "latency" and wanted == "neuronx":
            yield problem(
                Code.NEURON_BATCH,
                f"`objective: latency` serves every request by itself on {item.instance.name}; "
                f"batches of {serving.batch_size} would make it wait for others",
                "Remove `batch_size`, or set `objective: throughput`.",
                ("serving", "batch_size"),
            )
            return


def queue_holds_a_batch(situation: Situation) -> Iterator[Problem]:
    """The container refuses to start with a queue in which no batch could fill."""
    serving = situation.config.serving
    if isinstance(serving, NeuronServing) and serving.max_queue_length < serving.batch_size:
        yield problem(
            Code.NEURON_BATCH,
            f"a queue of {serving.max_queue_length} never holds a batch of {serving.batch_size}",
            "Raise `max_queue_length` or lower `batch_size`.",
            ("serving", "max_queue_length"),
        )


def buckets_end_at_the_longest(situation: Situation) -> Iterator[Problem]:
    """The container expects its longest graph to be of `sequence_length`."""
    serving = situation.config.serving
    if not isinstance(serving, NeuronServing) or serving.sequence_lengths is None:
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


def inf1_has_no_single_precision(situation: Situation) -> Iterator[Problem]:
    """The most accurate of neuron-cc's options still casts products to bf16 (facts: neuron)."""
    config = situation.config
    serving = config.serving
    if (
        isinstance(serving, NeuronServing)
        and config.artifacts.compile is not None
        and serving.framework == "neuron"
        and serving.dtype == "fp32"
    ):
        yield problem(
            Code.NEURON_FP32,
            "inf1 computes every matrix product in bf16 or fp16, and so nothing can be compiled "
            "with `dtype: fp32`",
            "Set `dtype: bf16`, or `fp16` for more digits and a smaller range.",
            ("serving", "dtype"),
        )


def release_fits_family(situation: Situation) -> Iterator[Problem]:
    """A compiled model runs on the family that it was compiled for."""
    config, release = situation.config, situation.config.artifacts.release
    if (
        not isinstance(config.serving, NeuronServing)
        or situation.environment.artifacts == "sample"
        or release is None
    ):
        return
    told: set[str] = set()
    for item, _ in _frameworks(situation):
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
            f"{_devices(item.instance)} ({target})",
            f"Compile the model for {target}{other}.",
            ("artifacts", "release", "target"),
        )


def compiled_for_one_family(situation: Situation) -> Iterator[Problem]:
    """Publishing compiles once: types of two families cannot run the same files."""
    config = situation.config
    if not isinstance(config.serving, NeuronServing) or config.artifacts.compile is None:
        return
    first: InstanceFacts | None = None
    for item, wanted in _frameworks(situation):
        target = TARGETS.get(instance_family(item.instance))
        if target is None or wanted != config.serving.framework:
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


def _older(version: str, than: str) -> bool:
    return [int(part) for part in version.split(".")] < [int(part) for part in than.split(".")]


def _frameworks(situation: Situation) -> Iterator[tuple[Placement, str]]:
    """Yields each placement on Neuron devices, with the kind of image that they need."""
    for item in situation.placements:
        generation = _generation(item.instance)
        if generation is not None:
            yield item, "neuron" if generation == PIPELINE_GENERATION else "neuronx"


def _generation(instance: InstanceFacts) -> str | None:
    return instance.accelerator.neuron_generation if instance.accelerator else None


def _devices(instance: InstanceFacts) -> str:
    accelerator = instance.accelerator
    return f"{accelerator.count} x {accelerator.product}" if accelerator else "no accelerator"


def _settings(serving: object) -> str:
    pipelined = isinstance(serving, NeuronServing) and (
        serving.objective == "latency" and serving.framework == "neuron"
    )
    return "`pipeline_cores` and `workers`" if pipelined else "`workers`"


RULES = (
    neuron_needs_device,
    image_fits_generation,
    aws_image_fits_hardware,
    driver_runs_the_sdk,
    generation_can_be_compiled_for,
    model_is_an_encoder,
    pipeline_is_for_latency,
    pipeline_fits_cores,
    workers_fit_cores,
    placements_agree,
    latency_waits_for_no_batch,
    queue_holds_a_batch,
    buckets_end_at_the_longest,
    inf1_has_no_single_precision,
    release_fits_family,
    compiled_for_one_family,
)
