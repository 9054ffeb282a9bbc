"""The dashboard of an endpoint in CloudWatch: its requests, times, machines and alarms."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from slipway.config.alarm_kinds import MACHINES, REQUESTS
from slipway.config.alarms_of_modes import ASYNC_REQUESTS, CONCURRENCY, QUEUE
from slipway.config.capacity_alarm import CAPACITY_WATCHES
from slipway.planning.plan import DeploymentPlan
from slipway.stacks.constructs.alarms import PERIOD_SECONDS, VariantAlarms, metric_dimensions

# Three beside each other on CloudWatch's grid of 24 columns.
_WIDTH = 8
_Line = tuple[str, str, str]
"""Metric, statistic and label."""

_ASYNC: Sequence[_Line] = (
    ("TimeInBacklog", "SampleCount", "all"), ("InvocationFailures", "Sum", "failed"),
)  # fmt: skip
_REALTIME: Sequence[_Line] = (
    ("Invocations", "Sum", "all"), ("Invocation4XXErrors", "Sum", "4XX"),
    ("Invocation5XXErrors", "Sum", "5XX"),
)  # fmt: skip
_WITHOUT_COPY: _Line = ("NoCapacityInvocationFailures", "Sum", "no copy")
_TIMES: Sequence[_Line] = (("ModelLatency", "p50", "p50"), ("ModelLatency", "p99", "p99"))
_SETUP: _Line = ("ModelSetupTime", "p99", "p99 (microseconds)")
_CONCURRENCY: _Line = (CONCURRENCY, "Maximum", "in use")
_OVERHEAD: _Line = ("OverheadLatency", "p99", "SageMaker's share, p99")
_MACHINES: Sequence[_Line] = (
    ("CPUUtilization", "Maximum", "CPU"), ("MemoryUtilization", "Maximum", "memory"),
    ("DiskUtilization", "Maximum", "disk"),
)  # fmt: skip
_GPUS: Sequence[_Line] = (
    ("GPUUtilization", "Maximum", "GPUs"), ("GPUMemoryUtilization", "Maximum", "GPU memory"),
)  # fmt: skip


class EndpointDashboard(Construct):
    """A dashboard with the metrics of an endpoint, its guests' among them, and its own alarms.

    A widget of an alarm names the alarm alone: CloudWatch draws its threshold. An edit of a
    threshold therefore changes nothing here.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        plan: DeploymentPlan,
        alarms: Mapping[str, VariantAlarms],
    ) -> None:
        super().__init__(scope, construct_id)
        self._plan = plan
        shown: list[dict[str, Any]] = [
            {"title": title, "metrics": metrics} for title, metrics in self._metrics() if metrics
        ]
        for variant, made in alarms.items():
            suffix = f" of {variant}" if len(alarms) > 1 else ""
            for alarm in made.every:
                annotations = {"alarms": [alarm.attr_arn]}
                shown.append({"title": f"{alarm.node.id}{suffix}", "annotations": annotations})
        common = {"region": plan.environment.region, "period": PERIOD_SECONDS}
        widgets = [
            {"type": "metric", "width": _WIDTH, "properties": each | common} for each in shown
        ]
        cloudwatch.CfnDashboard(
            self,
            "Dashboard",
            dashboard_name=plan.dashboard_name,
            dashboard_body=cdk.Stack.of(self).to_json_string({"widgets": widgets}),
        )

    def _metrics(self) -> Iterator[tuple[str, list[Any]]]:
        """Yields the title of each widget, and its metrics as a widget names them."""
        plan = self._plan
        is_async, has_copies = plan.config.endpoint.queue is not None, plan.component is not None
        requests = _ASYNC if is_async else _REALTIME
        times = _TIMES if is_async else (*_TIMES, _OVERHEAD)
        group = ASYNC_REQUESTS if is_async else REQUESTS
        subjects = [*self._subjects(group)]
        namespace = group.namespace
        counted = (*requests, _WITHOUT_COPY) if has_copies else requests
        yield "Requests", _lines(namespace, subjects, counted)
        yield "Time to answer (microseconds)", _lines(namespace, subjects, times)
        if plan.config.endpoint.capacity is not None:
            # No machine is anybody's, and AWS measures the use of memory alone.
            yield "Start of containers", _lines(namespace, subjects, [_SETUP])
            yield "Share of the concurrency", _lines(namespace, subjects, [_CONCURRENCY])
            machines = [*self._subjects(MACHINES)]
            yield "Memory (%)", _lines(MACHINES.namespace, machines, _MACHINES[1:2])
            return
        yield ("Copies" if has_copies else "Instances"), [*self._sizes()]
        if is_async:
            backlog = ("ApproximateBacklogSize", "Average", "requests")
            yield "Queue", _lines(namespace, [*self._subjects(QUEUE)][:1], [backlog])
        machines = [*self._subjects(MACHINES)]
        yield "Machines (%)", _lines(MACHINES.namespace, machines, _MACHINES)
        if any(variant.gpu_count for variant in plan.variants):
            yield "GPUs (%, added up)", _lines(MACHINES.namespace, machines, _GPUS)

    def _subjects(self, group: Any) -> Iterator[tuple[str, dict[str, str]]]:
        """Yields the name and the dimensions of each variant, or of each model's copies."""
        plan = self._plan
        for variant in plan.variants:
            name = variant.name if plan.component is None else plan.component.name
            yield name, metric_dimensions(plan, variant.name, group)
        if group is REQUESTS:
            for guest in plan.guests:
                name = plan.environment.stack_name(guest.name)
                yield name, {"InferenceComponentName": name}

    def _sizes(self) -> Iterator[list[Any]]:
        """Yields the quotients that the alarm at maximum capacity compares."""
        watch = CAPACITY_WATCHES[self._plan.config.endpoint.mode]
        (formula,) = watch.formulas
        subjects = [*self._subjects(watch.group)]
        for index, (name, dimensions) in enumerate(subjects[: 1 if watch.group is QUEUE else None]):
            ids = [f"{part}{index}" for part in ("whole", "share")]
            for metric, key in zip(watch.metrics, ids, strict=True):
                options = {"stat": metric.statistic, "id": key, "visible": False}
                yield _line(watch.group.namespace, metric.name, dimensions, options)
            label = name if len(subjects) > 1 else formula.label
            yield [{"expression": " / ".join(ids), "label": label}]


def _lines(
    namespace: str, subjects: Sequence[tuple[str, dict[str, str]]], lines: Sequence[_Line]
) -> list[Any]:
    return [
        _line(
            namespace,
            metric,
            dimensions,
            {"stat": statistic, "label": f"{name} {label}" if len(subjects) > 1 else label},
        )
        for name, dimensions in subjects
        for metric, statistic, label in lines
    ]


def _line(
    namespace: str, metric: str, dimensions: Mapping[str, str], options: Mapping[str, Any]
) -> list[Any]:
    pairs = [part for pair in dimensions.items() for part in pair]
    return [namespace, metric, *pairs, dict(options)]
