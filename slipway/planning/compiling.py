"""How a checkpoint becomes what the container serves: the training job that compiles it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.config.sections.serving import TensorRTServing
from slipway.errors import Kind, Problem
from slipway.facts.instances import InstanceFacts
from slipway.planning.containers import tensorrt_release
from slipway.planning.images import compiler_image
from slipway.planning.plan import ImagePlan
from slipway.planning.targets import CPU, compile_target

# In the artifact bucket; SageMaker makes a folder there for each job. The foundation lets the job's
# role write there only, and deletes what lies there after a while.
OUTPUT_PREFIX = "compile/"


@dataclass(frozen=True)
class CompilePlan:
    """What one training job is asked to do.

    Args:
        target: what the result runs on: `cpu`, or a compute capability such as `sm75`.
        compiler: what makes it, for example `tensorrt 10.13`.
        image: the compiler's image.
        instance_type: where the job runs.
        volume_size_gb: disk of the job.
        max_runtime_seconds: it is stopped after that.
        hyperparameters: what the container's `compile` command is told.
    """

    target: str
    compiler: str
    image: ImagePlan
    instance_type: str
    volume_size_gb: int
    max_runtime_seconds: int
    hyperparameters: Mapping[str, str]


def compile_plan(
    config: ModelConfig,
    environment: Environment,
    instances: tuple[InstanceFacts, ...],
    serving_image: ImagePlan,
) -> CompilePlan | Problem:
    """Returns the training job of a config that Slipway compiles, or why there can be none.

    Args:
        config: a config of the TensorRT container that breaks no rule, with `compile`.
        environment: where the job runs.
        instances: every type the endpoint may run on.
        serving_image: the image that serves the result.
    """
    compiling, serving = config.artifacts.compile, config.serving
    release = tensorrt_release(config, instances)
    if compiling is None or not isinstance(serving, TensorRTServing) or release is None:
        raise ValueError(f"{config.name}: nothing compiles for the container {serving.container}")
    target = compile_target(config, environment, instances)
    if target is None:
        return Problem(
            Kind.COMPATIBILITY,
            f"nobody says which compute capability the GPU of {instances[0].name} has, so no "
            "engine can be built for it",
            "Choose another type, or build the engine yourself and set `artifacts.release`.",
            ("endpoint", "instances"),
        )
    return CompilePlan(
        target=target,
        compiler="onnx" if target == CPU else f"tensorrt {release.version}",
        image=compiler_image(serving_image),
        instance_type=compiling.instance,
        volume_size_gb=compiling.volume_size_gb,
        max_runtime_seconds=compiling.max_runtime_seconds,
        hyperparameters={
            "max_batch_size": str(serving.max_batch_size),
            "max_input_tokens": str(serving.max_input_tokens),
            "max_new_tokens": str(serving.max_new_tokens),
            "target": target,
        },
    )
