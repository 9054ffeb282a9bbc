"""How a checkpoint becomes what the container serves: the training job that compiles it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from slipway.config.sections.artifacts import Compile
from slipway.planning.plan import ImagePlan

CPU = "cpu"
"""Target of what the containers' CPU back ends serve; the embedded AWS has no accelerator."""

SETTINGS_CHANNEL = "settings"
"""Input channel of the job with the files of `settings`; `weights` is the other one."""


@dataclass(frozen=True)
class CompilePlan:
    """What one training job is asked to do.

    Args:
        target: what the result runs on: `cpu`, a compute capability such as `sm75`, or a family of
            Neuron devices such as `inf2`.
        compiler: what makes it, for example `tensorrt 10.13`.
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
    hyperparameters: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ("compile",)
    settings: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(
        cls, compiling: Compile, target: str, compiler: str, image: ImagePlan, **rest: Any
    ) -> "CompilePlan":
        """Returns the job that a config's `compile` asks for; the rest says how the job is told."""
        return cls(
            target=target,
            compiler=compiler,
            image=image,
            instance_type=compiling.instance,
            volume_size_gb=compiling.volume_size_gb,
            max_runtime_seconds=compiling.max_runtime_seconds,
            **rest,
        )


def compiler_image(serving: ImagePlan) -> ImagePlan:
    """Returns the image that compiles for a container of Slipway, built from the same sources."""
    return replace(serving, tag=f"{serving.tag}-compiler")


# Any: the section of a family that generates text. Shared code names no family.
def engine_hyperparameters(serving: Any, target: str | None) -> dict[str, str]:
    """Returns what the job is told that exports graphs, and builds engines of them on a GPU."""
    return {
        "dtype": "fp32" if target == CPU and serving.dtype != "int8" else serving.dtype,
        "max_batch_size": str(serving.max_batch_size),
        "max_input_tokens": str(serving.max_input_tokens),
        "max_new_tokens": str(serving.max_new_tokens),
    }
