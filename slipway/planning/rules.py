"""What cannot work together: each rule a function of config and facts, yielding problems.

They say in a second what SageMaker would say after minutes, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.errors import Kind, Problem
from slipway.facts.instances import InstanceFacts


@dataclass(frozen=True)
class Situation:
    """What a rule looks at: a config, the instance type it names, and where it is to run."""

    config: ModelConfig
    instance: InstanceFacts
    environment: Environment


Rule = Callable[[Situation], Iterator[Problem]]


def _problem(message: str, remedy: str, *field: str | int) -> Problem:
    return Problem(Kind.COMPATIBILITY, message, remedy, field)


def tensorrt_needs_nvidia_gpu(situation: Situation) -> Iterator[Problem]:
    """TensorRT runs on nothing but NVIDIA's GPUs."""
    config, instance = situation.config, situation.instance
    accelerator = instance.accelerator
    if config.serving.container != "tensorrt" or not instance.accelerator_known:
        return
    if accelerator is None or not accelerator.is_nvidia_gpu:
        has = f"{accelerator.count} x {accelerator.product}" if accelerator else "no accelerator"
        yield _problem(
            f"{instance.name} has {has}; the container `tensorrt` needs an NVIDIA GPU",
            "Choose an instance type with an NVIDIA GPU, for example `ml.g4dn.xlarge` (NVIDIA T4, "
            "sm75) or `ml.g5.xlarge` (NVIDIA A10G, sm86).",
            "endpoint", "instances", 0,
        )  # fmt: skip


def volume_needs_ebs(situation: Situation) -> Iterator[Problem]:
    """SageMaker rejects a volume size for instance types with local NVMe, minutes into a deploy."""
    config, instance = situation.config, situation.instance
    if config.endpoint.volume_size_gb is not None and instance.local_nvme_gb:
        yield _problem(
            f"{instance.name} stores on its local NVMe disk of {instance.local_nvme_gb} GB; "
            "SageMaker refuses a volume size for it",
            "Remove `volume_size_gb`.",
            "endpoint", "volume_size_gb",
        )  # fmt: skip


def engine_fits_gpu(situation: Situation) -> Iterator[Problem]:
    """A TensorRT engine loads on one compute capability only (facts: tensorrt-triton)."""
    instance, release = situation.instance, situation.config.artifacts.release
    gpu = instance.accelerator
    if situation.environment.artifacts == "sample" or release is None or gpu is None:
        return
    capability = gpu.compute_capability
    if capability is not None and release.target != capability:
        yield _problem(
            f"the engine was built for {release.target}, but {instance.name} has "
            f"{gpu.product} ({capability})",
            f"Build the engine for {capability}, or choose an instance type with "
            f"{release.target}.",
            "artifacts", "release", "target",
        )  # fmt: skip


def release_exists(situation: Situation) -> Iterator[Problem]:
    """An environment that deploys releases needs one."""
    config, environment = situation.config, situation.environment
    if environment.artifacts == "release" and config.artifacts.release is None:
        yield _problem(
            f"environment `{environment.name}` deploys the release, and there is none",
            "Add `artifacts.release` with the path of the compiled model and its target, or set "
            "`artifacts: sample` for that environment.",
            "artifacts",
        )


def scaling_bounds(situation: Situation) -> Iterator[Problem]:
    """The instance count at creation lies between the scalable target's bounds."""
    config, scaling = situation.config, situation.config.autoscaling
    if scaling is None:
        return
    low, high = scaling.min_instance_count, scaling.max_instance_count
    if low > high:
        yield _problem(
            f"the minimum, {low}, is above the maximum, {high}",
            "Raise `max_instance_count` or lower `min_instance_count`.",
            "autoscaling", "min_instance_count",
        )  # fmt: skip
    elif not low <= config.endpoint.instance_count <= high:
        yield _problem(
            f"{config.endpoint.instance_count} instances at creation lie outside the "
            f"autoscaling range of {low} to {high}",
            f"Use a count from {low} to {high}.",
            "endpoint", "instance_count",
        )  # fmt: skip


def token_budget(situation: Situation) -> Iterator[Problem]:
    """A request that says nothing gets no more tokens than one that asks for the most."""
    serving = situation.config.serving
    if serving.default_new_tokens > serving.max_new_tokens:
        yield _problem(
            f"the default of {serving.default_new_tokens} new tokens is above the limit of "
            f"{serving.max_new_tokens}",
            "Lower `default_new_tokens` or raise `max_new_tokens`.",
            "serving", "default_new_tokens",
        )  # fmt: skip


def latency_below_timeout(situation: Situation) -> Iterator[Problem]:
    """An alarm above the request timeout can never be raised."""
    config = situation.config
    alarm_seconds = config.alarms.model_latency_p99_milliseconds / 1000
    if alarm_seconds >= config.serving.request_timeout_seconds:
        yield _problem(
            f"{config.alarms.model_latency_p99_milliseconds} ms is never reached: requests end "
            f"after {config.serving.request_timeout_seconds} s",
            "Set the latency objective below `serving.request_timeout_seconds`.",
            "alarms", "model_latency_p99_milliseconds",
        )  # fmt: skip


RULES: tuple[Rule, ...] = (
    tensorrt_needs_nvidia_gpu,
    volume_needs_ebs,
    release_exists,
    engine_fits_gpu,
    scaling_bounds,
    token_budget,
    latency_below_timeout,
)
