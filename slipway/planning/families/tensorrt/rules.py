"""Rules about the TensorRT container: its GPU, its release, its limits."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.config.sections.serving.tensorrt import TensorRTServing
from slipway.errors import Problem
from slipway.facts.tensorrt.releases import tensorrt_releases
from slipway.planning.compiling import CPU
from slipway.planning.deployment import ENCODERS, problem
from slipway.planning.encoders import encoder_batches
from slipway.planning.families.tensorrt.deployment import TensorRT

# `other` turns the check off.
_FAMILIES = ("gpt2", "other")
# What each kind of model needs, and the settings that it alone has.
_OF_GENERATION = ("max_input_tokens", "max_new_tokens", "default_new_tokens")
_OF_ENCODERS = ("task", "sequence_length")
_INSTEAD = {"max_batch_size": "batch_size", "max_input_tokens": "sequence_length"}
_ALL_OF_GENERATION = ("max_batch_size", *_OF_GENERATION)
_ALL_OF_ENCODERS = (*_OF_ENCODERS, "sequence_lengths", "batch_size")


def model_can_be_served(trt: TensorRT) -> Iterator[Problem]:
    """The decode loop is for GPT-2's graph, and the tasks are for encoders."""
    family = trt.config.model.family
    if family not in _FAMILIES and not trt.is_encoder:
        yield problem(
            Code.TENSORRT_FAMILY,
            f"the container `tensorrt` serves the family gpt2 and encoders ({', '.join(ENCODERS)}),"
            f" and this is {family}",
            "Use `container: lmi`, or `container: custom` with an image of your own.",
            ("model", "family"),
        )


def settings_fit_family(trt: TensorRT) -> Iterator[Problem]:
    """A text that is generated has a length, and an encoder a task."""
    serving, family = trt.serving, trt.config.model.family
    is_encoder = trt.serves_encoder
    needed = _OF_ENCODERS if is_encoder else _OF_GENERATION
    others = _ALL_OF_GENERATION if is_encoder else _ALL_OF_ENCODERS
    for name in needed:
        if getattr(serving, name) is None:
            field = TensorRTServing.model_fields[name]
            yield problem(
                Code.MISSING_FIELD,
                f"`{name}` is missing, which {'an encoder' if is_encoder else family} needs",
                f"Add it, for example `{name}: {field.examples and field.examples[0]}`. "
                f"{field.description}",
                ("serving",),
            )
    for name in others:
        if name in serving.model_fields_set and getattr(serving, name) is not None:
            kind = "generates no text" if is_encoder else "is no encoder"
            instead = _INSTEAD.get(name) if is_encoder else None
            message = f"`{name}` has no effect: a model of the family {family} {kind}"
            remedy = f"Write `{instead}` instead." if instead else "Remove it."
            yield problem(Code.SETTING_OF_ANOTHER_MODEL, message, remedy, ("serving", name))


def needs_nvidia_gpu(trt: TensorRT) -> Iterator[Problem]:
    """Refuses TensorRT without a GPU of NVIDIA, since it runs on no other; a graph needs none."""
    if trt.computes_on_cpu:
        return
    for placement in trt.placements:
        instance, accelerator = placement.instance, placement.instance.accelerator
        if not instance.accelerator_known or (accelerator and accelerator.is_nvidia_gpu):
            continue
        has = f"{accelerator.count} x {accelerator.product}" if accelerator else "no accelerator"
        instead = " Or let GPT-2 run on processors with `dtype: int8` or `dtype: fp32`."
        yield problem(
            Code.NVIDIA_GPU,
            f"{instance.name} has {has}; the container `tensorrt` needs an NVIDIA GPU",
            "Choose an instance type with an NVIDIA GPU, for example `ml.g4dn.xlarge` (NVIDIA T4, "
            "sm75) or `ml.g5.xlarge` (NVIDIA A10G, sm86)."
            f"{'' if accelerator or trt.serves_encoder else instead}",
            placement.field,
        )


def release_runs_on_gpu(trt: TensorRT) -> Iterator[Problem]:
    """TensorRT 10.5 removed Volta: an engine could not even be built for it."""
    serving = trt.serving
    if serving.tensorrt_version is None:
        return
    release = tensorrt_releases()[serving.tensorrt_version]
    for placement, product, capability in trt.nvidia_gpus():
        if not release.runs_on(capability):
            fitting = [r.version for r in tensorrt_releases().values() if r.runs_on(capability)]
            remedy = f"Use {fitting[-1]}, or leave it out. Or choose" if fitting else "Choose"
            yield problem(
                Code.GPU_TOO_OLD,
                f"TensorRT {release.version} needs {release.minimum_compute_capability} or newer; "
                f"{placement.instance.name} has {product} ({capability})",
                f"{remedy} an instance type with a newer GPU.",
                ("serving", "tensorrt_version"),
            )


def gpu_is_not_too_old(trt: TensorRT) -> Iterator[Problem]:
    """Refuses GPUs that no TensorRT release supports; the newest that fits is the default."""
    if trt.serving.tensorrt_version is not None:
        return
    for placement, product, capability in trt.nvidia_gpus():
        if not any(release.runs_on(capability) for release in tensorrt_releases().values()):
            yield problem(
                Code.GPU_TOO_OLD,
                f"no TensorRT version of Slipway's images runs on {placement.instance.name}: "
                f"{product} is {capability}",
                "Choose an instance type with a newer GPU, for example `ml.g4dn.xlarge`.",
                placement.field,
            )


def token_budget(trt: TensorRT) -> Iterator[Problem]:
    """A request that says nothing gets no more tokens than one that asks for the most."""
    serving = trt.serving
    if serving.default_new_tokens is None or serving.max_new_tokens is None:
        return
    if serving.default_new_tokens > serving.max_new_tokens:
        yield problem(
            Code.ANSWER_LENGTHS,
            f"the default of {serving.default_new_tokens} new tokens is above the limit of "
            f"{serving.max_new_tokens}",
            "Lower `default_new_tokens` or raise `max_new_tokens`.",
            ("serving", "default_new_tokens"),
        )


def encoder_batches_fit(trt: TensorRT) -> Iterator[Problem]:
    """Refuses batches and buckets of an encoder that the container refuses."""
    if trt.serves_encoder:
        yield from encoder_batches(trt)


def cpu_runs_graph(trt: TensorRT) -> Iterator[Problem]:
    """A processor runs the graph, and no engine."""
    release = trt.config.artifacts.release
    if trt.computes_on_cpu and trt.deploys_release and release and release.target != CPU:
        yield problem(
            Code.COMPILED_FOR_ANOTHER,
            f"the engine was built for {release.target}, but {trt.instance.name} has no GPU",
            f"Compile the model for {CPU}, or choose an instance type with {release.target}.",
            ("artifacts", "release", "target"),
        )


def int8_runs_on_processors(trt: TensorRT) -> Iterator[Problem]:
    """Refuses int8 in an engine."""
    if trt.serving.dtype != "int8":
        return
    for gpu in [each for each in trt.instances if each.accelerator is not None][:1]:
        yield problem(
            Code.INT8_ON_GPU,
            f"`dtype: int8` is for processors, and {gpu.name} has {gpu.accelerator_title}",
            "Write `dtype: fp16`, or choose types without an accelerator, for example "
            "`ml.c7i.2xlarge`.",
            ("serving", "dtype"),
        )
