"""How a checkpoint becomes what the container serves: the training job that compiles it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from slipway.codes.code import Code
from slipway.config.sections.artifacts import Compile
from slipway.errors import Kind, Problem
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
    hyperparameters: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ("compile",)
    settings: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(
        cls, compiling: Compile, target: str, compiler: str, image: ImagePlan, **rest: Any
    ) -> "CompilePlan":
        """Returns the job that a config's `compile` asks for.

        Args:
            compiling: the section; it has the instance and the limits.
            target: what the result runs on.
            compiler: what makes it.
            image: the compiler's image.
            rest: how the job is told: `hyperparameters`, `arguments`, `settings`.
        """
        return cls(
            target=target,
            compiler=compiler,
            image=image,
            instance_type=compiling.instance,
            volume_size_gb=compiling.volume_size_gb,
            max_runtime_seconds=compiling.max_runtime_seconds,
            **rest,
        )


class EngineServing(Protocol):
    """What the `serving` sections have in common for which engines are built."""

    @property
    def dtype(self) -> str:
        """Returns the precision of the engine."""

    @property
    def max_batch_size(self) -> int:
        """Returns the most rows of a batch."""

    @property
    def max_input_tokens(self) -> int | None:
        """Returns the most tokens of an input; a rule asks for it."""

    @property
    def max_new_tokens(self) -> int | None:
        """Returns the most tokens of an answer; a rule asks for it."""


def engine_hyperparameters(serving: EngineServing, target: str | None) -> dict[str, str]:
    """Returns what the job is told that exports graphs, and builds engines of them on a GPU.

    Args:
        serving: the config's section.
        target: what the artifact runs on; None if no source knows.
    """
    return {
        "dtype": "fp32" if target == CPU and serving.dtype != "int8" else serving.dtype,
        "max_batch_size": str(serving.max_batch_size),
        "max_input_tokens": str(serving.max_input_tokens),
        "max_new_tokens": str(serving.max_new_tokens),
    }


def no_target(instance_type: str, so: str, remedy: str) -> Problem:
    """Returns the problem of a GPU that no source knows.

    Args:
        instance_type: has the GPU.
        so: the consequence, as a clause.
        remedy: what to do.
    """
    return Problem(
        Code.UNKNOWN_COMPUTE_CAPABILITY,
        Kind.COMPATIBILITY,
        f"the compute capability of the GPU of {instance_type} is not known, so {so}",
        remedy,
        ("endpoint", "instances"),
    )
