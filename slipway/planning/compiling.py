"""How a checkpoint becomes what the container serves: the training job that compiles it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.config.sections.artifacts import Compile
from slipway.config.sections.serving import LmiServing, NeuronServing, TensorRTServing
from slipway.errors import Kind, Problem
from slipway.facts.instances import InstanceFacts
from slipway.planning.containers import tensorrt_release
from slipway.planning.images import aws_image, compiler_image
from slipway.planning.lmi_partition import job_arguments, job_files, partitioning_of
from slipway.planning.lock import is_compiled
from slipway.planning.neuron_compiling import neuron_compilation
from slipway.planning.plan import ImagePlan, PartitionPlan
from slipway.planning.targets import CPU, compile_target


@dataclass(frozen=True)
class CompilePlan:
    """What one training job is asked to do.

    Args:
        target: what the result runs on: `cpu`, a compute capability such as `sm75`, or a family of
            Neuron devices such as `inf2`.
        compiler: what makes it, for example `tensorrt 10.13`.
        image: the compiler's image.
        instance_type: type of the job's instance.
        volume_size_gb: disk of the job.
        max_runtime_seconds: it is stopped after that.
        hyperparameters: what the container's `compile` command is told.
        arguments: of the container.
        settings: files of a second input channel, by path; without any there is none.
    """

    target: str
    compiler: str
    image: ImagePlan
    instance_type: str
    volume_size_gb: int
    max_runtime_seconds: int
    hyperparameters: Mapping[str, str]
    arguments: tuple[str, ...] = ("compile",)
    settings: Mapping[str, bytes] = field(default_factory=dict)


def compile_plan(
    config: ModelConfig,
    environment: Environment,
    instances: tuple[InstanceFacts, ...],
    serving_image: ImagePlan,
) -> CompilePlan | Problem:
    """Returns the training job of a config that Slipway compiles, or why there can be none.

    Args:
        config: a config of the TensorRT or Neuron container or of LMI that breaks no rule, with
            `compile`.
        environment: where the job runs.
        instances: every type the endpoint may run on.
        serving_image: the image that serves the result.
    """
    compiling, serving = config.artifacts.compile, config.serving
    if compiling is None:
        raise ValueError(f"{config.name} has nothing to compile")
    target = compile_target(config, environment, instances)
    if isinstance(serving, LmiServing):
        return _partition_job(config, compiling, environment, instances, target)
    if isinstance(serving, NeuronServing) and target is not None:
        return _graph_job(config, compiling, environment, instances, target, serving_image)
    if isinstance(serving, TensorRTServing):
        return _engine_job(config, compiling, instances, target, serving_image)
    raise ValueError(f"{config.name}: nothing compiles for the container {serving.container}")


def partition_plan(
    config: ModelConfig, environment: Environment, instances: tuple[InstanceFacts, ...]
) -> PartitionPlan | None:
    """Returns how an LMI config's weights are partitioned; None where they are served as they are.

    Args:
        config: a config that breaks no rule.
        environment: the environment to deploy to.
        instances: every type the endpoint may run on.
    """
    compiling = config.artifacts.compile
    if compiling is None or not isinstance(config.serving, LmiServing):
        return None
    if not is_compiled(config, environment):
        return None
    return PartitionPlan(
        instance_type=compiling.instance,
        target=compile_target(config, environment, instances) or "a GPU that no source knows",
        arguments=job_arguments(partitioning_of(config)),
    )


def _engine_job(
    config: ModelConfig,
    compiling: Compile,
    instances: tuple[InstanceFacts, ...],
    target: str | None,
    serving_image: ImagePlan,
) -> CompilePlan | Problem:
    """TensorRT builds its engine on the endpoint's own kind of GPU."""
    serving, release = config.serving, tensorrt_release(config, instances)
    if not isinstance(serving, TensorRTServing) or release is None:
        raise ValueError(f"{config.name}: no TensorRT is known for its GPUs")
    if target is None:
        return _no_target(
            instances,
            "no engine can be built for it",
            "Choose another type, or build the engine yourself and set `artifacts.release`.",
        )
    return CompilePlan(
        target=target,
        compiler="onnx" if target == CPU else f"tensorrt {release.version}",
        image=compiler_image(serving_image),
        instance_type=compiling.instance,
        volume_size_gb=compiling.volume_size_gb,
        max_runtime_seconds=compiling.max_runtime_seconds,
        hyperparameters={
            "dtype": "fp32" if target == CPU else serving.dtype,
            "max_batch_size": str(serving.max_batch_size),
            "max_input_tokens": str(serving.max_input_tokens),
            "max_new_tokens": str(serving.max_new_tokens),
            "target": target,
        },
    )


def _graph_job(
    config: ModelConfig,
    compiling: Compile,
    environment: Environment,
    instances: tuple[InstanceFacts, ...],
    target: str,
    serving_image: ImagePlan,
) -> CompilePlan:
    """Neuron's graphs are compiled on a CPU."""
    made = neuron_compilation(config, instances[0], target, environment.region)
    return CompilePlan(
        target=target,
        compiler=made.compiler,
        image=compiler_image(serving_image),
        instance_type=compiling.instance,
        volume_size_gb=compiling.volume_size_gb,
        max_runtime_seconds=compiling.max_runtime_seconds,
        hyperparameters=made.hyperparameters,
    )


def _partition_job(
    config: ModelConfig,
    compiling: Compile,
    environment: Environment,
    instances: tuple[InstanceFacts, ...],
    target: str | None,
) -> CompilePlan | Problem:
    """AWS's image that serves an LMI model partitions its weights, too."""
    aws = aws_image(config, environment.region)
    if aws is None or aws.account is None:
        raise ValueError(f"{config.name}: no rule refused an image that is not published")
    if target is None:
        return _no_target(
            instances,
            "nothing can be partitioned for it",
            "Choose another type, or remove `compile`.",
        )
    found = partitioning_of(config)
    return CompilePlan(
        target=target,
        compiler=found.name,
        image=ImagePlan(aws.account, aws.region, aws.repository, aws.tag),
        instance_type=compiling.instance,
        volume_size_gb=compiling.volume_size_gb,
        max_runtime_seconds=compiling.max_runtime_seconds,
        hyperparameters={},
        arguments=job_arguments(found),
        settings=job_files(found),
    )


def _no_target(instances: tuple[InstanceFacts, ...], so: str, remedy: str) -> Problem:
    return Problem(
        Code.UNKNOWN_COMPUTE_CAPABILITY,
        Kind.COMPATIBILITY,
        f"the compute capability of the GPU of {instances[0].name} is not known, so {so}",
        remedy,
        ("endpoint", "instances"),
    )
