"""`alarms` and `rollout`: what is watched, and how a change is brought out under that watch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from slipway.config.sections.base import Section


class Alarms(Section):
    """CloudWatch alarms, sent to the environment's notification topic."""

    server_error_rate_percent: float = Field(
        1.0, gt=0, le=100, allow_inf_nan=False,
        description="Share of invocations that fail on the server's side (5XX, no answer, broken "
        "connection) and raises the alarm.", examples=[1.0],
    )  # fmt: skip
    model_latency_p99_milliseconds: int = Field(
        gt=0, le=3_600_000,
        description="99th percentile of the container's answer time that raises the alarm.",
        examples=[600],
    )  # fmt: skip
    overhead_latency_p99_milliseconds: int | None = Field(
        None, gt=0, le=60_000,
        description="99th percentile of SageMaker's own share of the answer time.", examples=[200],
    )  # fmt: skip
    client_error_rate_percent: float | None = Field(
        None, gt=0, le=100, allow_inf_nan=False,
        description="Share of invocations answered 4XX that raises the alarm.", examples=[10],
    )  # fmt: skip
    memory_utilization_percent: float | None = Field(
        None, gt=0, le=100, allow_inf_nan=False,
        description="Use of main memory that raises the alarm.", examples=[80],
    )  # fmt: skip
    disk_utilization_percent: float | None = Field(
        None, gt=0, le=100, allow_inf_nan=False,
        description="Use of the disk that raises the alarm.", examples=[80],
    )  # fmt: skip
    gpu_memory_utilization_percent: float | None = Field(
        None, gt=0, le=100, allow_inf_nan=False,
        description="Use of the GPUs' memory that raises the alarm, as a mean over the GPUs. The "
        "types of a pool need the same number of GPUs then.",
        examples=[90],
    )  # fmt: skip
    at_max_capacity: bool = Field(
        False,
        description="Raise an alarm when the fleet is as large as autoscaling may make it.",
        examples=[True],
    )
    evaluation_periods_minutes: int = Field(
        3, ge=1, le=60,
        description="Minutes in a row over the threshold before the alarm is raised.", examples=[3],
    )  # fmt: skip


AlarmName = Literal[
    "server_error_rate", "model_latency_p99", "overhead_latency_p99", "client_error_rate",
    "memory_utilization", "disk_utilization", "gpu_memory_utilization",
]  # fmt: skip


class Rollout(Section):
    """How an update moves the traffic to the new fleet.

    SageMaker's default moves it at once, watches no alarm and stops the old fleet. Each field but
    `strategy` asks for more than that.
    """

    strategy: Literal["all_at_once", "canary", "linear", "rolling"] = Field(
        "all_at_once",
        description="All at once, a first share, equal shares, or instance by instance.",
        examples=["canary"],
    )
    step_percent: int | None = Field(
        None, ge=5, le=50,
        description="Share of a canary, a linear step or a rolling batch.", examples=[25],
    )  # fmt: skip
    wait_seconds: int = Field(
        300,
        ge=0,
        le=3600,
        description="Watch after each step; all at once is one step.",
        examples=[600],
    )
    termination_wait_seconds: int = Field(
        0, ge=0, le=3600,
        description="How long the old fleet stays, so that going back is quick.", examples=[300],
    )  # fmt: skip
    max_execution_seconds: int | None = Field(
        None, ge=600, le=28_800,
        description="An update that takes longer is undone.", examples=[3600],
    )  # fmt: skip
    rollback_alarms: Annotated[tuple[AlarmName, ...], Field(strict=False)] = Field(
        ("server_error_rate",),
        max_length=10,
        description="Alarms that undo the update. The role that deploys needs "
        "`cloudwatch:DescribeAlarms`, or nothing undoes it.",
        examples=[["server_error_rate"]],
    )

    @property
    def is_guarded(self) -> bool:
        """Whether more is asked for than SageMaker's default: another strategy, or any field."""
        return self.strategy != "all_at_once" or bool(self.model_fields_set - {"strategy"})
