"""`alarms`: what is watched. The fields of thresholds are the table of all alarms."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from slipway.config.alarm_kinds import (
    CLIENT_ERRORS,
    MACHINES,
    REQUESTS,
    AlarmKind,
    Formula,
    Metric,
    MetricGroup,
    Watch,
)
from slipway.config.alarms_of_modes import CONCURRENCY, QUEUE, SERVERLESS_REQUESTS
from slipway.config.sections.base import Percent, Section

_INVOCATIONS = Metric(
    "Invocations", "None", "Sum", "All requests, of which the alarm takes the share.", "invocations"
)


def _percentile(
    construct_id: str, subject: str, group: MetricGroup, metric: str, meaning: str
) -> Watch:
    description = f"99th percentile of {subject}, in microseconds"
    return Watch(
        construct_id, description, group, (Metric(metric, "Microseconds", "p99", meaning),)
    )


def _use(construct_id: str, subject: str, metric: str, measured: str, gpu_part: str = "") -> Watch:
    meaning = f"{measured} that the containers of an instance use."
    read = Metric(metric, "Percent", "Maximum", meaning)
    description = f"use of {subject}, in percent"
    return Watch(construct_id, description, MACHINES, (read,), gpu_part=gpu_part)


class Alarms(Section):
    """CloudWatch alarms, sent to the environment's notification topic."""

    server_error_rate_percent: Annotated[
        Percent,
        Watch(
            "ServerErrorRate",
            "share of invocations that failed on the server's side (5XX, no answer, broken "
            "connection), in percent",
            REQUESTS,
            (
                Metric(
                    "Invocation5XXErrors",
                    "None",
                    "Sum",
                    "Requests that the container answered 5XX.",
                    "server_errors",
                ),
                replace(
                    CLIENT_ERRORS, meaning=f"{CLIENT_ERRORS.meaning} The alarm subtracts them."
                ),
                Metric(
                    "InvocationModelErrors",
                    "None",
                    "Sum",
                    "Requests without a 2XX answer, time-outs and broken connections among them.",
                    "model_errors",
                ),
                _INVOCATIONS,
            ),
            (
                # Invocation5XXErrors counts answers of the model itself. A container that died or
                # is late answers nothing. Only InvocationModelErrors, which includes the 4XX,
                # counts socket errors and time-outs.
                Formula("failures", "model_errors - client_errors", "Not answered, or 5XX"),
                Formula(
                    "rate",
                    "100 * MAX([server_errors, failures]) / invocations",
                    "Failed on the server's side (%)",
                ),
            ),
        ),
    ] = Field(
        1.0,
        description="The alarm is raised when a larger share of invocations fails on the "
        "server's side: 5XX, no answer, or a broken connection.",
        examples=[1.0],
    )
    model_latency_p99_milliseconds: Annotated[
        int,
        _percentile(
            "ModelLatency",
            "the container's answer time",
            REQUESTS,
            "ModelLatency",
            "Time until the container has answered, as SageMaker sees it.",
        ),
    ] = Field(
        gt=0,
        le=3_600_000,
        description="The alarm is raised when the 99th percentile of the container's answer "
        "time is above this.",
        examples=[600],
    )
    overhead_latency_p99_milliseconds: Annotated[
        int | None,
        _percentile(
            "OverheadLatency",
            "SageMaker's own share of the answer time",
            REQUESTS,
            "OverheadLatency",
            "The rest of the time that SageMaker takes for a request.",
        ),
    ] = Field(
        None,
        gt=0,
        le=60_000,
        description="The alarm is raised when the 99th percentile of SageMaker's own share of"
        " the answer time is above this.",
        examples=[200],
    )
    client_error_rate_percent: Annotated[
        Percent | None,
        Watch(
            "ClientErrorRate",
            "share of invocations answered 4XX, in percent",
            REQUESTS,
            (CLIENT_ERRORS, _INVOCATIONS),
            (Formula("rate", "100 * client_errors / invocations", "4XX rate (%)"),),
        ),
    ] = Field(
        None,
        description="The alarm is raised when a larger share of invocations is answered 4XX.",
        examples=[10],
    )
    memory_utilization_percent: Annotated[
        Percent | None,
        _use("Memory", "main memory", "MemoryUtilization", "Main memory"),
    ] = Field(
        None,
        description="The alarm is raised when an instance uses more of its main memory.",
        examples=[80],
    )
    disk_utilization_percent: Annotated[
        Percent | None,
        _use("Disk", "disk", "DiskUtilization", "Disk space"),
    ] = Field(
        None,
        description="The alarm is raised when an instance uses more of its disk.",
        examples=[80],
    )
    gpu_memory_utilization_percent: Annotated[
        Percent | None,
        _use("GPUMemory", "the GPUs' memory", "GPUMemoryUtilization", "GPU memory", "memory"),
    ] = Field(
        None,
        description="The alarm is raised when an instance uses more of its GPUs' memory, as a"
        " mean over the GPUs. All types of a pool then need the same number of "
        "GPUs.",
        examples=[90],
    )
    oldest_request_seconds: Annotated[
        int | None,
        Watch(
            "OldestRequest",
            "age of the oldest request in the queue, in seconds",
            QUEUE,
            (
                Metric(
                    "ApproximateAgeOfOldestRequest",
                    "Seconds",
                    "Maximum",
                    "Age of the request that is longest in the queue.",
                ),
            ),
        ),
    ] = Field(
        None,
        gt=0,
        le=21_600,
        description="The alarm is raised when a request has been in the queue for longer. Only "
        "with `mode: async`, whose requests expire after 21,600 seconds.",
        examples=[900],
    )
    model_setup_p99_milliseconds: Annotated[
        int | None,
        _percentile(
            "ModelSetup",
            "the time that a serverless container takes to start",
            SERVERLESS_REQUESTS,
            "ModelSetupTime",
            "Time until a new container is ready for a request.",
        ),
    ] = Field(
        None,
        gt=0,
        le=180_000,
        description="The alarm is raised when the 99th percentile of a container's start is above "
        "this. Only with `mode: serverless`, whose containers have 180 seconds.",
        examples=[20_000],
    )
    concurrency_utilization_percent: Annotated[
        float | None,
        Watch(
            "Concurrency",
            "requests at a time as a share of the most that are allowed, in percent",
            SERVERLESS_REQUESTS,
            (
                Metric(
                    CONCURRENCY, "None", "Maximum", "Share of `max_concurrency` in use.", "share"
                ),
            ),
            (Formula("used", "100 * share", "Concurrency in use (%)"),),
        ),
    ] = Field(
        None,
        gt=0,
        lt=100,
        allow_inf_nan=False,
        description="The alarm is raised when more of `max_concurrency` is in use. At 100 % AWS "
        "refuses requests. Only with `mode: serverless`.",
        examples=[80],
    )
    at_max_capacity: bool = Field(
        False,
        description="Raises an alarm when the fleet stays as large as autoscaling may make it. "
        "With schedules, that is their largest `max_instance_count`. With `mode: scale_to_zero`, "
        "it is the largest `max_copies`.",
        examples=[True],
    )
    evaluation_periods_minutes: int = Field(
        3,
        ge=1,
        le=60,
        description="Number of minutes in a row above the threshold that raise an alarm.",
        examples=[3],
    )

    def threshold(self, kind: AlarmKind) -> float | None:
        """Returns the threshold of an alarm in its field's unit; None without the alarm."""
        threshold: float | None = getattr(self, kind.field)
        return threshold

    def metric_threshold(self, kind: AlarmKind, gpu_count: int) -> float | None:
        """Returns the threshold of a variant's alarm in its metric's unit; None without the alarm.

        A metric that adds up over the GPUs of an instance has a threshold for all of them.
        """
        threshold = self.threshold(kind)
        if threshold is None:
            return None
        gpus = gpu_count if kind.watch.gpu_part else 1
        return threshold * kind.metric_units_per_field_unit * gpus


def _kinds() -> dict[str, AlarmKind]:
    kinds = [
        AlarmKind(name, watch)
        for name, info in Alarms.model_fields.items()
        for watch in info.metadata
        if isinstance(watch, Watch)
    ]
    return {kind.name: kind for kind in kinds}


# By their names in `rollout.rollback_alarms`, in the order of the fields.
ALARM_KINDS: Mapping[str, AlarmKind] = _kinds()
