"""Rules about the TensorRT container: its GPU, its release, its limits."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.facts.tensorrt.releases import tensorrt_releases
from slipway.planning.deployment import problem
from slipway.planning.families.tensorrt.deployment import TensorRT

# `other` turns the check off.
_FAMILIES = ("gpt2", "other")


def model_can_be_served(trt: TensorRT) -> Iterator[Problem]:
    """The decode loop, and the job that compiles, are for GPT-2's graph."""
    family = trt.config.model.family
    if family not in _FAMILIES:
        container = "neuron" if trt.is_encoder else "lmi"
        yield problem(
            Code.TENSORRT_FAMILY,
            f"the container `tensorrt` serves models of the family gpt2, and this is {family}",
            f"Use `container: {container}`, or `container: custom` with an image of your own.",
            ("model", "family"),
        )


def needs_nvidia_gpu(trt: TensorRT) -> Iterator[Problem]:
    """Refuses TensorRT without a GPU of NVIDIA, since it runs on no other."""
    for placement in trt.placements:
        instance, accelerator = placement.instance, placement.instance.accelerator
        if not instance.accelerator_known or (accelerator and accelerator.is_nvidia_gpu):
            continue
        has = f"{accelerator.count} x {accelerator.product}" if accelerator else "no accelerator"
        yield problem(
            Code.NVIDIA_GPU,
            f"{instance.name} has {has}; the container `tensorrt` needs an NVIDIA GPU",
            "Choose an instance type with an NVIDIA GPU, for example `ml.g4dn.xlarge` (NVIDIA T4, "
            "sm75) or `ml.g5.xlarge` (NVIDIA A10G, sm86).",
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
    if serving.default_new_tokens > serving.max_new_tokens:
        yield problem(
            Code.ANSWER_LENGTHS,
            f"the default of {serving.default_new_tokens} new tokens is above the limit of "
            f"{serving.max_new_tokens}",
            "Lower `default_new_tokens` or raise `max_new_tokens`.",
            ("serving", "default_new_tokens"),
        )


RULES = (
    model_can_be_served,
    needs_nvidia_gpu,
    release_runs_on_gpu,
    gpu_is_not_too_old,
    token_budget,
)
