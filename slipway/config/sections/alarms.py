"""`alarms` and `rollout`: what is watched, and how a change is brought out under that watch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from slipway.config.sections.base import Section


class Alarms(Section):
    """CloudWatch alarms, sent to the environment's notification topic."""

    server_error_rate_percent: float = Field(
        1.0,
        gt=0,
        le=100,
        allow_inf_nan=False,
        description="The alarm is raised when a larger share of invocations fails on the "
        "server's side: 5XX, no answer, or a broken connection.",
        examples=[1.0],
    )
    model_latency_p99_milliseconds: int = Field(
        gt=0,
        le=3_600_000,
        description="The alarm is raised when the 99th percentile of the container's answer "
        "time is above this.",
        examples=[600],
    )
    overhead_latency_p99_milliseconds: int | None = Field(
        None,
        gt=0,
        le=60_000,
        description="The alarm is raised when the 99th percentile of SageMaker's own share of"
        " the answer time is above this.",
        examples=[200],
    )
    client_error_rate_percent: float | None = Field(
        None,
        gt=0,
        le=100,
        allow_inf_nan=False,
        description="The alarm is raised when a larger share of invocations is answered 4XX.",
        examples=[10],
    )
    memory_utilization_percent: float | None = Field(
        None,
        gt=0,
        le=100,
        allow_inf_nan=False,
        description="The alarm is raised when an instance uses more of its main memory.",
        examples=[80],
    )
    disk_utilization_percent: float | None = Field(
        None,
        gt=0,
        le=100,
        allow_inf_nan=False,
        description="The alarm is raised when an instance uses more of its disk.",
        examples=[80],
    )
    gpu_memory_utilization_percent: float | None = Field(
        None,
        gt=0,
        le=100,
        allow_inf_nan=False,
        description="The alarm is raised when an instance uses more of its GPUs' memory, as a"
        " mean over the GPUs. All types of a pool then need the same number of "
        "GPUs.",
        examples=[90],
    )
    at_max_capacity: bool = Field(
        False,
        description="Raises an alarm when the fleet is as large as autoscaling may make it.",
        examples=[True],
    )
    evaluation_periods_minutes: int = Field(
        3,
        ge=1,
        le=60,
        description="Number of minutes in a row above the threshold that raise an alarm.",
        examples=[3],
    )


AlarmName = Literal[
    "server_error_rate",
    "model_latency_p99",
    "overhead_latency_p99",
    "client_error_rate",
    "memory_utilization",
    "disk_utilization",
    "gpu_memory_utilization",
]


class Rollout(Section):
    """How an update moves the traffic to the new fleet.

    SageMaker's default moves it at once, watches no alarm and stops the old fleet. Each field but
    `strategy` asks for more than that.
    """

    strategy: Literal["all_at_once", "canary", "linear", "rolling"] = Field(
        "all_at_once",
        description="How the traffic moves: all at once, a first share, equal shares, or "
        "instance by instance.",
        examples=["canary"],
    )
    step_percent: int | None = Field(
        None,
        ge=5,
        le=50,
        description="Share of a canary, a linear step or a rolling batch.",
        examples=[25],
    )
    wait_seconds: int = Field(
        300,
        ge=0,
        le=3600,
        description="Time that the alarms are watched after each step. `all_at_once` is one step.",
        examples=[600],
    )
    termination_wait_seconds: int = Field(
        0,
        ge=0,
        le=3600,
        description="Time that the old fleet stays, so that going back is quick.",
        examples=[300],
    )
    max_execution_seconds: int | None = Field(
        None,
        ge=600,
        le=28_800,
        description="SageMaker undoes an update that takes longer.",
        examples=[3600],
    )
    rollback_alarms: Annotated[tuple[AlarmName, ...], Field(strict=False)] = Field(
        ("server_error_rate",),
        max_length=10,
        description="Alarms that undo the update. The role that deploys needs "
        "`cloudwatch:DescribeAlarms`; without that right SageMaker watches no "
        "alarm.",
        examples=[["server_error_rate"]],
    )

    @property
    def is_guarded(self) -> bool:
        """Whether more is asked for than SageMaker's default: another strategy, or any field."""
        return self.strategy != "all_at_once" or bool(self.model_fields_set - {"strategy"})
