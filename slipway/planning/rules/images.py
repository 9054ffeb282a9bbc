"""Rules about the container image: that there is one, where it is, and which GPUs it runs on."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.facts.images import ImageFacts, image, runs_on, versions
from slipway.planning.deployment import Deployment, problem


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
            older = _last_version_for(aws, capability)
            remedy = f"Use version {older}, or" if older else "Use"
            yield problem(
                Code.GPU_TOO_OLD,
                f"{aws.framework} {aws.version} needs {aws.minimum_compute_capability} or newer; "
                f"{placement.instance.name} has {product} ({capability})",
                f"{remedy} an instance type with a newer GPU.",
                placement.field,
            )


def _last_version_for(aws: ImageFacts, capability: str) -> str | None:
    every = versions(aws.framework)
    fitting = [each for each in every if runs_on(aws.framework, each, capability)]
    return fitting[-1] if fitting else None
