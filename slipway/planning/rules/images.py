"""Rules about the container image: that there is one, where it is, and which GPUs it runs on."""

from __future__ import annotations

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.config.sections.serving import CustomServing, TensorRTServing, TritonServing
from slipway.errors import Problem, nearest
from slipway.facts.images import ImageFacts, image, versions
from slipway.facts.tensorrt import architecture, tensorrt_releases
from slipway.planning.images import TRITON, aws_image
from slipway.planning.rules.situation import Placement, Situation, problem

_OWN_REPOSITORY_FAMILY = "t5"


def triton_release_exists(situation: Situation) -> Iterator[Problem]:
    """AWS makes an image of few of NVIDIA's monthly releases."""
    serving = situation.config.serving
    if not isinstance(serving, TritonServing) or serving.version in versions(TRITON):
        return
    guess = nearest(serving.version, versions(TRITON))
    hint = f"Did you mean `{guess}`? " if guess else ""
    yield problem(
        Code.UNKNOWN_IMAGE_VERSION,
        f"there is no Triton image of release {serving.version}",
        f"{hint}There are {', '.join(versions(TRITON))}.",
        ("serving", "version"),
    )


def image_is_in_region(situation: Situation) -> Iterator[Problem]:
    """AWS publishes an image in some regions; SageMaker pulls from its own."""
    region = situation.environment.region
    aws = aws_image(situation.config, region)
    if aws is None or aws.account is not None:
        return
    elsewhere = [
        version
        for version in versions(aws.framework)
        if image(aws.framework, version, region).account is not None
    ]
    remedy = (
        f"Use a version that is there: {', '.join(elsewhere)}."
        if elsewhere
        else "Choose another region, or another image."
    )
    yield problem(
        Code.IMAGE_NOT_IN_REGION,
        f"AWS does not publish {aws.framework} {aws.version} in {region}",
        remedy,
        ("serving", "container" if not elsewhere else "version"),
    )


def triton_needs_nvidia_gpu(situation: Situation) -> Iterator[Problem]:
    """Triton runs anywhere, its TensorRT back end on NVIDIA's GPUs alone."""
    serving = situation.config.serving
    if not isinstance(serving, TritonServing):
        return
    for placement in situation.placements:
        accelerator = placement.instance.accelerator
        if not placement.instance.accelerator_known:
            continue
        if accelerator is None and serving.backend != "tensorrt":
            continue
        if accelerator is None or not accelerator.is_nvidia_gpu:
            has = f"{accelerator.count} x {accelerator.product}" if accelerator else "no GPU"
            yield problem(
                Code.NVIDIA_GPU,
                f"{placement.instance.name} has {has}; the backend `{serving.backend}` of Triton "
                "does not run on it",
                "Choose an instance type with an NVIDIA GPU, for example `ml.g4dn.xlarge` or "
                "`ml.g5.xlarge`.",
                placement.field,
            )


def triton_has_a_repository(situation: Situation) -> Iterator[Problem]:
    """Slipway makes a model repository for T5; any other is the user's own."""
    config = situation.config
    serving = config.serving
    if isinstance(serving, TritonServing) and serving.repository is None:
        if config.model.family == _OWN_REPOSITORY_FAMILY:
            return
        yield problem(
            Code.TRITON_REPOSITORY,
            f"Slipway makes no Triton model repository for the family `{config.model.family}`",
            "Add `repository` with the directory of your own.",
            ("serving", "container"),
        )


def custom_image_has_its_regions_domain(situation: Situation) -> Iterator[Problem]:
    """China's registries have a domain of their own, and no other region's has it."""
    serving = situation.config.serving
    if not isinstance(serving, CustomServing):
        return
    registry = serving.image_uri.partition("/")[0]
    in_china = registry.split(".")[3].startswith("cn-")
    if registry.endswith(".cn") != in_china:
        domain = "amazonaws.com.cn" if in_china else "amazonaws.com"
        yield problem(
            Code.WRONG_REGISTRY_DOMAIN,
            f"there is no registry {registry}: that region's domain is {domain}",
            f"Write it with {domain}.",
            ("serving", "image_uri"),
        )


def custom_image_is_in_region(situation: Situation) -> Iterator[Problem]:
    """SageMaker pulls images from its own region alone.

    CreateModel: "Region of "IMAGE" does not match expected region of REGION. Cross region ECR image
    pulls are not allowed." (https://github.com/ed-donner/alex/issues/30 and
    https://github.com/aws/sagemaker-pytorch-inference-toolkit/pull/7, read 2026-11-22).
    """
    serving = situation.config.serving
    if not isinstance(serving, CustomServing):
        return
    region, image_region = situation.environment.region, serving.image_uri.split(".")[3]
    if image_region != region:
        yield problem(
            Code.IMAGE_NOT_IN_REGION,
            f"the image lies in {image_region} and the endpoint in {region}; SageMaker pulls no "
            "image across regions",
            f"Copy the image to {region}, for example with a replication rule of ECR, and name "
            f"that copy, in `environments.{situation.environment.name}.serving.image_uri` where "
            "environments lie in several regions.",
            ("serving", "image_uri"),
        )


def image_runs_on_gpu(situation: Situation) -> Iterator[Problem]:
    """Newer CUDA, Triton and TensorRT leave old GPUs behind (facts: tensorrt-triton)."""
    aws = aws_image(situation.config, situation.environment.region)
    if aws is None or aws.minimum_compute_capability is None:
        return
    for placement, capability in _gpus(situation):
        if architecture(capability) < architecture(aws.minimum_compute_capability):
            older = _last_version_for(aws, capability)
            remedy = f"Use version {older}, or" if older else "Use"
            yield problem(
                Code.GPU_TOO_OLD,
                f"{aws.framework} {aws.version} needs {aws.minimum_compute_capability} or newer; "
                f"{placement.instance.name} has {_product(placement)} ({capability})",
                f"{remedy} an instance type with a newer GPU.",
                placement.field,
            )


def tensorrt_runs_on_gpu(situation: Situation) -> Iterator[Problem]:
    """TensorRT 10.5 removed Volta: an engine could not even be built for it."""
    serving = situation.config.serving
    if not isinstance(serving, TensorRTServing) or serving.tensorrt_version is None:
        return
    release = tensorrt_releases()[serving.tensorrt_version]
    for placement, capability in _gpus(situation):
        if not release.runs_on(capability):
            fitting = [r.version for r in tensorrt_releases().values() if r.runs_on(capability)]
            remedy = f"Use {fitting[-1]}, or leave it out. Or choose" if fitting else "Choose"
            yield problem(
                Code.GPU_TOO_OLD,
                f"TensorRT {release.version} needs {release.minimum_compute_capability} or newer; "
                f"{placement.instance.name} has {_product(placement)} ({capability})",
                f"{remedy} an instance type with a newer GPU.",
                ("serving", "tensorrt_version"),
            )


def gpu_is_not_too_old(situation: Situation) -> Iterator[Problem]:
    """Refuses GPUs that no TensorRT release supports; the newest that fits is the default."""
    serving = situation.config.serving
    if not isinstance(serving, TensorRTServing) or serving.tensorrt_version is not None:
        return
    for placement, capability in _gpus(situation):
        if not any(release.runs_on(capability) for release in tensorrt_releases().values()):
            yield problem(
                Code.GPU_TOO_OLD,
                f"no TensorRT version of Slipway's images runs on {placement.instance.name}: "
                f"{_product(placement)} is {capability}",
                "Choose an instance type with a newer GPU, for example `ml.g4dn.xlarge`.",
                placement.field,
            )


def _gpus(situation: Situation) -> Iterator[tuple[Placement, str]]:
    for placement in situation.placements:
        accelerator = placement.instance.accelerator
        if accelerator and accelerator.is_nvidia_gpu and accelerator.compute_capability:
            yield placement, accelerator.compute_capability


def _product(placement: Placement) -> str:
    accelerator = placement.instance.accelerator
    return accelerator.product if accelerator else "no GPU"


def _last_version_for(aws: ImageFacts, capability: str) -> str | None:
    fitting = [
        version
        for version in versions(aws.framework)
        if (least := image(aws.framework, version, aws.region).minimum_compute_capability)
        and architecture(capability) >= architecture(least)
    ]
    return fitting[-1] if fitting else None


RULES = (
    triton_release_exists,
    image_is_in_region,
    triton_needs_nvidia_gpu,
    triton_has_a_repository,
    custom_image_has_its_regions_domain,
    custom_image_is_in_region,
    image_runs_on_gpu,
    tensorrt_runs_on_gpu,
    gpu_is_not_too_old,
)
