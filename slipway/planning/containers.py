"""The image of a container, and its settings: host image, variables, serving.properties."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.config.sections.serving import (
    CustomServing,
    LmiServing,
    NeuronServing,
    TensorRTServing,
    TritonServing,
)
from slipway.errors import Kind, Problem
from slipway.facts.images import (
    default_inference_ami,
    inference_amis,
    neuron_inference_ami,
)
from slipway.facts.instances import InstanceFacts
from slipway.facts.tensorrt import TensorRTRelease, newest_release_for, tensorrt_releases
from slipway.planning import lmi, neuron
from slipway.planning.artifacts import UNPUBLISHED, Parts
from slipway.planning.images import aws_image, image_family, image_name, neuron_base_tag
from slipway.planning.lmi_partition import loading_properties
from slipway.planning.lock import is_told_by_variables
from slipway.planning.plan import ImagePlan


def image_plan(
    config: ModelConfig,
    instances: tuple[InstanceFacts, ...],
    environment: Environment,
    image_digests: Mapping[str, str],
    *,
    allow_unpublished: bool,
) -> ImagePlan | Problem:
    """Returns the image, or why there is none to deploy yet.

    Args:
        config: a config that breaks no rule.
        instances: every type it may run on.
        environment: its registry has the images that Slipway builds.
        image_digests: fingerprint of the sources of each image that Slipway builds, by container
            family.
        allow_unpublished: whether an image that does not exist is allowed.
    """
    serving = config.serving
    if isinstance(serving, CustomServing):
        return _custom_image(serving)
    family = image_family(config)
    if family is None:
        aws = aws_image(config, environment.region)
        if aws is None or aws.account is None:
            raise ValueError(f"{config.name}: no rule refused an image that is not published")
        return ImagePlan(aws.account, aws.region, aws.repository, aws.tag)
    digest = image_digests.get(family)
    if digest is None and not allow_unpublished:
        return Problem(
            Code.NOT_SUPPORTED_YET,
            Kind.STATE,
            f"Slipway has no image for the container `{serving.container}` yet",
            "`-c allow-unpublished=true` synthesises the deployment for reading.",
            ("serving", "container"),
        )
    # The same sources on another base are another image.
    tag = f"{_base(config, instances, environment.region)}-{digest or UNPUBLISHED}"
    return ImagePlan(
        environment.account, environment.region, f"{environment.repository_prefix}{family}", tag
    )


def _custom_image(serving: CustomServing) -> ImagePlan:
    registry, _, path = serving.image_uri.partition("/")
    account, _, _, region, *_ = registry.split(".")
    repository, separator, tag = path.partition("@")
    if not separator:
        repository, _, tag = path.partition(":")
    return ImagePlan(account, region, repository, tag)


def _base(config: ModelConfig, instances: tuple[InstanceFacts, ...], region: str) -> str:
    """Returns the base of an image that Slipway builds, in the form of its tag."""
    release = tensorrt_release(config, instances)
    if release is not None:
        return f"trt{release.version}"
    name, aws = image_name(config), aws_image(config, region)
    if isinstance(config.serving, LmiServing) and aws is not None:
        return aws.tag
    if name is None:
        raise ValueError(f"{config.serving.container} is built on no image that is known")
    return neuron_base_tag(*name)


def tensorrt_release(
    config: ModelConfig, instances: tuple[InstanceFacts, ...]
) -> TensorRTRelease | None:
    """Returns the TensorRT of Slipway's container: as configured, or the newest for the GPUs."""
    serving = config.serving
    if not isinstance(serving, TensorRTServing):
        return None
    if serving.tensorrt_version is not None:
        return tensorrt_releases()[serving.tensorrt_version]
    return newest_release_for(
        frozenset(
            instance.accelerator.compute_capability
            for instance in instances
            if instance.accelerator and instance.accelerator.compute_capability
        )
    )


def cuda_version(
    config: ModelConfig, instances: tuple[InstanceFacts, ...], region: str
) -> str | None:
    """Returns the CUDA in the image, for example `12.4`; None without CUDA or a source.

    Args:
        config: names the image.
        instances: every type it may run on; they decide Slipway's TensorRT release.
        region: region of AWS's image.
    """
    if isinstance(config.serving, CustomServing):
        return config.serving.cuda_version
    release = tensorrt_release(config, instances)
    if release is not None:
        return release.cuda_version
    aws = aws_image(config, region)
    return aws.cuda_version if aws else None


def inference_ami(
    config: ModelConfig,
    own: Collection[InstanceFacts],
    instances: tuple[InstanceFacts, ...],
    region: str,
) -> str | None:
    """Returns a variant's host image: as configured, or what the container's CUDA or Neuron needs.

    None where the variant's types have no accelerator that its driver is for: SageMaker refuses a
    GPU's host image on a type without one (`ami_fits`).

    Args:
        config: whose container it is.
        own: the variant's types.
        instances: every type of every variant; they share one container image.
        region: region of the endpoint.
    """
    chosen = config.endpoint.inference_ami_version
    if chosen is not None:
        return chosen
    needed = _ami_of_image(config, instances, region)
    if needed is None or not any(ami_fits(needed, instance) for instance in own):
        return None
    return needed


def ami_fits(ami: str, instance: InstanceFacts) -> bool:
    """Returns whether a host image has the driver of the type's accelerator.

    AWS's words where it has not: "Invalid combination: instance m5 and Cuda 12.2. Please provide a
    supported configuration for this region."
    (https://github.com/aws/sagemaker-python-sdk/pull/5093, read 2026-11-22).
    """
    accelerator = instance.accelerator
    if accelerator is None or instance.name.startswith("ml.inf1."):
        return False
    is_for_neuron = inference_amis()[ami].neuron_driver is not None
    return accelerator.kind == "neuron" if is_for_neuron else accelerator.is_nvidia_gpu


def _ami_of_image(
    config: ModelConfig, instances: tuple[InstanceFacts, ...], region: str
) -> str | None:
    accelerated = [instance for instance in instances if instance.accelerator]
    is_custom = isinstance(config.serving, CustomServing)
    if is_custom and accelerated and all(map(_has_neuron_host, accelerated)):
        # The host that SageMaker takes by itself has Neuron driver 2.10, too old for images of
        # 2025 and later: https://github.com/awslabs/llm-hosting-container/pull/156 (2025-06-25).
        return neuron_inference_ami().name
    if isinstance(config.serving, (CustomServing, TensorRTServing)):
        cuda = cuda_version(config, instances, region)
        return default_inference_ami(cuda) if cuda else None
    aws = aws_image(config, region)
    return aws.inference_ami if aws else None


def _has_neuron_host(instance: InstanceFacts) -> bool:
    """Returns whether there is a host image for the type's Neuron devices; inf1 has none."""
    generation = instance.accelerator.neuron_generation if instance.accelerator else None
    return generation not in (None, neuron.PIPELINE_GENERATION)


def serving_properties(
    config: ModelConfig, environment: Environment, parts: Parts
) -> dict[str, str]:
    """Returns an LMI package's serving.properties; empty if the config has no package.

    Args:
        config: a config that breaks no rule.
        environment: gives the settings that it overrides.
        parts: give the URI of the weights.
    """
    serving = config.serving
    if not isinstance(serving, LmiServing) or parts.weights is None:
        return {}
    return lmi.lmi_properties(config, parts.weights.s3_uri, loading_properties(config, environment))


def container_environment(
    config: ModelConfig, instance: InstanceFacts, environment: Environment
) -> dict[str, str]:
    """Returns the variables of the container.

    Args:
        config: a config that breaks no rule.
        instance: preferred type, which decides the layout on NeuronCores.
        environment: decides whether the sample or the release is served.
    """
    serving = config.serving
    if isinstance(serving, CustomServing):
        return dict(serving.environment)
    if isinstance(serving, LmiServing):
        told = is_told_by_variables(config, environment)
        return lmi.container_environment(config, has_settings=told)
    if isinstance(serving, NeuronServing):
        return neuron.container_environment(config, instance)
    if isinstance(serving, TritonServing):
        return _triton_environment(config, serving)
    return {
        "SLIPWAY_DEFAULT_NEW_TOKENS": str(serving.default_new_tokens),
        "SLIPWAY_MAX_BATCH_DELAY_MILLISECONDS": str(serving.max_batch_delay_milliseconds),
        "SLIPWAY_MAX_BATCH_SIZE": str(serving.max_batch_size),
        "SLIPWAY_MAX_INPUT_TOKENS": str(serving.max_input_tokens),
        "SLIPWAY_MAX_NEW_TOKENS": str(serving.max_new_tokens),
        "SLIPWAY_MAX_QUEUE_LENGTH": str(serving.max_queue_length),
        "SLIPWAY_REQUEST_TIMEOUT_SECONDS": str(serving.request_timeout_seconds),
    }


def _triton_environment(config: ModelConfig, serving: TritonServing) -> dict[str, str]:
    """Triton's front end for SageMaker reads these, and no others (facts: tensorrt-triton)."""
    own = {
        # The repository that Slipway makes calls its model as the deployment is called.
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": serving.default_model or config.name,
        "SAGEMAKER_TRITON_LOG_VERBOSE": str(serving.log_verbose).lower(),
        "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": str(serving.shared_memory_bytes),
    }
    if serving.repository is not None and serving.default_model is None:
        # Triton takes the one model of the repository.
        del own["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"]
    return {**own, **serving.environment}
