"""Rules about instance types, and about the container image that runs on them."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.config.alarm_kinds import AlarmKind
from slipway.config.sections.alarms import ALARM_KINDS, Alarms
from slipway.errors import Problem
from slipway.facts.images import (
    default_inference_ami,
    image,
    inference_amis,
    runs_on,
    versions,
)
from slipway.facts.instances import InstanceFacts
from slipway.planning.deployment import Deployment, problem
from slipway.planning.images import ami_fits, inference_ami
from slipway.planning.memory_estimate import counted
from slipway.planning.placements import Placement

_NEURON_AMI = "al2-ami-sagemaker-inference-neuron-2"
_CUDA_13_AMI = "al2023-ami-sagemaker-inference-gpu-4-1"


def image_runs_on_processor(deployment: Deployment) -> Iterator[Problem]:
    """The images that Slipway builds are for x86_64."""
    if deployment.runs_on_arm:
        return
    for placement in deployment.placements:
        if placement.instance.architecture == "arm64":
            message = f"{placement.instance.name} has an arm64 processor; the image is for x86_64"
            remedy = "Choose an instance type whose processor is Intel's or AMD's."
            yield problem(Code.ARM_PROCESSOR, message, remedy, placement.field)


def volume_needs_ebs(deployment: Deployment) -> Iterator[Problem]:
    """SageMaker rejects a volume size for instance types with local NVMe, minutes into a deploy."""
    if deployment.config.endpoint.volume_size_gb is None:
        return
    for instance in deployment.instances:
        if instance.local_nvme_gb:
            yield problem(
                Code.VOLUME_OF_NVME_TYPE,
                f"{instance.name} stores on its local NVMe disk of {instance.local_nvme_gb} GB; "
                "SageMaker refuses a volume size for it",
                "Remove `volume_size_gb`.",
                ("endpoint", "volume_size_gb"),
            )


def ami_fits_accelerator(deployment: Deployment) -> Iterator[Problem]:
    """A host image carries the driver of one kind of accelerator, and inf1 takes none."""
    chosen = deployment.config.endpoint.inference_ami_version
    if chosen is None:
        return
    for placement in deployment.placements:
        reason = _ami_mismatch(chosen, placement)
        if reason:
            message = f"{chosen} does not fit {placement.instance.name}: {reason}"
            remedy = "Remove `inference_ami_version`, or choose one with the type's driver."
            yield problem(Code.HOST_IMAGE, message, remedy, ("endpoint", "inference_ami_version"))


def _ami_mismatch(chosen: str, placement: Placement) -> str | None:
    accelerator = placement.instance.accelerator
    if not placement.instance.accelerator_known:
        return None
    if placement.instance.name.startswith("ml.inf1."):
        return "SageMaker takes no host image for inf1"
    if accelerator is None:
        return "the type has no accelerator"
    wants_neuron = accelerator.kind == "neuron"
    if wants_neuron != (chosen == _NEURON_AMI):
        return f"it has {accelerator.product}"
    return None


def pool_has_one_host_image(deployment: Deployment) -> Iterator[Problem]:
    """SageMaker takes one host image for all types of a pool, and refuses what does not fit one."""
    # `ami_fits_accelerator` looks at every type, and the family's rules say what it needs.
    if deployment.config.endpoint.inference_ami_version or deployment.needs_accelerator:
        return
    for placement in deployment.placements:
        pool = deployment.instances_of(placement.variant)
        ami = inference_ami(deployment, pool)
        if ami is None or ami_fits(ami, placement.instance):
            continue
        fitting = next(instance for instance in pool if ami_fits(ami, instance))
        yield problem(
            Code.HOST_IMAGE,
            f"{placement.instance.name} has {placement.instance.accelerator_title}, and "
            f"{fitting.name} of the same pool needs the host image {ami}",
            "Name only types with the same kind of accelerator, or give each kind a variant.",
            placement.field,
        )


def ami_fits_cuda(deployment: Deployment) -> Iterator[Problem]:
    """An image with CUDA 13 needs the driver of the newest host image (facts: hosting, rule 11)."""
    chosen, cuda = deployment.config.endpoint.inference_ami_version, deployment.cuda_version
    if cuda is None or chosen is None or inference_amis()[chosen].cuda is None:
        return
    needed = default_inference_ami(cuda)
    if needed == _CUDA_13_AMI and chosen != needed:
        message = f"the image has CUDA {cuda}, whose driver {chosen} does not have"
        remedy = f"Use `{_CUDA_13_AMI}`, or leave it out: it is then chosen by the image's CUDA."
        yield problem(Code.HOST_IMAGE, message, remedy, ("endpoint", "inference_ami_version"))


def gpu_alarm_needs_gpu(deployment: Deployment) -> Iterator[Problem]:
    """Types without a GPU publish no GPU metrics: such an alarm could never go off."""
    for kind in _gpu_alarms(deployment.config.alarms):
        for instance in deployment.instances:
            if instance.gpu_count:
                continue
            reason = f"{instance.name} has no GPU, and so no metric of its {kind.watch.gpu_part}"
            if not instance.accelerator_known:
                unknown = f"the number of GPUs of {instance.name} is not known"
                reason = f"{unknown}, and the metric adds them up"
            yield problem(Code.GPU_ALARM, reason, f"Remove `{kind.field}`.", ("alarms", kind.field))


def gpu_alarm_has_one_threshold(deployment: Deployment) -> Iterator[Problem]:
    """The metric adds up over an instance's GPUs, and has no dimension that names the type.

    In a pool of types with one and with four GPUs, 90 % is 90 on the one and 360 on the other.
    https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch.html, read 2026-11-22.
    """
    for kind in _gpu_alarms(deployment.config.alarms):
        (metric,) = kind.watch.metrics
        preferred: dict[str, InstanceFacts] = {}
        for placement in deployment.every_placement:
            instance = placement.instance
            first = preferred.setdefault(placement.variant, instance)
            if 0 < instance.gpu_count != first.gpu_count > 0:
                yield problem(
                    Code.GPU_ALARM,
                    f"{instance.name} has {counted(instance.gpu_count, 'GPU')} and {first.name} "
                    f"has {counted(first.gpu_count, 'GPU')}; the metric `{metric.name}` adds up "
                    "over the GPUs of an instance, so no one threshold is right for both",
                    f"Use types with the same number of GPUs, or remove `alarms.{kind.field}`.",
                    placement.field,
                )


def _gpu_alarms(alarms: Alarms) -> list[AlarmKind]:
    return [
        kind
        for kind in ALARM_KINDS.values()
        if kind.watch.gpu_part and alarms.threshold(kind) is not None
    ]


def image_is_in_region(deployment: Deployment) -> Iterator[Problem]:
    """AWS publishes an image in some regions; SageMaker pulls from its own."""
    aws, region = deployment.aws_image, deployment.region
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


def image_runs_on_gpu(deployment: Deployment) -> Iterator[Problem]:
    """Newer CUDA, Triton and TensorRT leave old GPUs behind (facts: tensorrt-triton)."""
    aws = deployment.aws_image
    if aws is None:
        return
    for placement, product, capability in deployment.nvidia_gpus():
        if runs_on(aws.framework, aws.version, capability) is False:
            every = versions(aws.framework)
            older = [each for each in every if runs_on(aws.framework, each, capability)]
            remedy = f"Use version {older[-1]}, or" if older else "Use"
            yield problem(
                Code.GPU_TOO_OLD,
                f"{aws.framework} {aws.version} needs {aws.minimum_compute_capability} or newer; "
                f"{placement.instance.name} has {product} ({capability})",
                f"{remedy} an instance type with a newer GPU.",
                placement.field,
            )
