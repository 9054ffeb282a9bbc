"""Alarms of a variant: failed answers, late answers, full machines."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from slipway.planning.plan import DeploymentPlan, VariantPlan
from stacks.constructs import machine_metrics

# https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch.html
_INVOCATIONS = "AWS/SageMaker"
_PERIOD_SECONDS = 60
# Construct id -> the name in `rollout.rollback_alarms`.
_NAMES = {
    "ServerErrorRate": "server_error_rate",
    "ModelLatency": "model_latency_p99",
    "OverheadLatency": "overhead_latency_p99",
    "ClientErrorRate": "client_error_rate",
    "Memory": "memory_utilization",
    "Disk": "disk_utilization",
    "GPUMemory": "gpu_memory_utilization",
}
_Query = cloudwatch.CfnAlarm.MetricDataQueryProperty


class VariantAlarms(Construct):
    """Alarms, each of which notifies the environment's topic when it is raised and when it ends.

    They name the endpoint by its literal name, because a reference to the endpoint would be
    circular in a rollout.

    Args:
        scope: the endpoint's stack.
        construct_id: name within the scope.
        plan: thresholds and names.
        variant: the variant that is watched.
        topic_arn: the topic that is notified.

    Attributes:
        by_name: the alarms by the names that `rollout.rollback_alarms` gives them.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        plan: DeploymentPlan,
        variant: VariantPlan,
        topic_arn: str,
    ) -> None:
        super().__init__(scope, construct_id)
        self._plan = plan
        self._variant = variant
        self._subject = plan.endpoint_name
        if len(plan.variants) > 1:
            self._subject += f", {variant.name}"
        self._topic_arn = topic_arn
        self.by_name: dict[str, cloudwatch.CfnAlarm] = {}
        self._dimensions = [
            cloudwatch.CfnAlarm.DimensionProperty(name="EndpointName", value=plan.endpoint_name),
            cloudwatch.CfnAlarm.DimensionProperty(name="VariantName", value=variant.name),
        ]
        self._answers()
        self._machines()

    def _answers(self) -> None:
        alarms = self._plan.alarms
        self._rate(
            "ServerErrorRate",
            "share of invocations that failed on the server's side (5XX, no answer, broken "
            "connection), in percent",
            alarms.server_error_rate_percent,
            [
                self._sum("server_errors", "Invocation5XXErrors"),
                self._sum("client_errors", "Invocation4XXErrors"),
                self._sum("model_errors", "InvocationModelErrors"),
                self._sum("invocations", "Invocations"),
                # Invocation5XXErrors counts answers of the model itself. A container that died or
                # is late answers nothing. Only InvocationModelErrors, which includes the 4XX,
                # counts socket errors and time-outs.
                _Query(
                    id="failures",
                    expression="model_errors - client_errors",
                    label="Not answered, or 5XX",
                    return_data=False,
                ),
                _Query(
                    id="rate",
                    expression="100 * MAX([server_errors, failures]) / invocations",
                    label="Failed on the server's side (%)",
                    return_data=True,
                ),
            ],
        )
        self._percentile(
            "ModelLatency",
            "99th percentile of the container's answer time, in microseconds",
            alarms.model_latency_p99_microseconds,
        )
        if alarms.overhead_latency_p99_microseconds is not None:
            self._percentile(
                "OverheadLatency",
                "99th percentile of SageMaker's own share of the answer time, in microseconds",
                alarms.overhead_latency_p99_microseconds,
            )
        if alarms.client_error_rate_percent is not None:
            self._rate(
                "ClientErrorRate",
                "share of invocations answered 4XX, in percent",
                alarms.client_error_rate_percent,
                [
                    self._sum("client_errors", "Invocation4XXErrors"),
                    self._sum("invocations", "Invocations"),
                    _Query(
                        id="rate",
                        expression="100 * client_errors / invocations",
                        label="4XX rate (%)",
                        return_data=True,
                    ),
                ],
            )

    def _machines(self) -> None:
        alarms = self._plan.alarms
        for construct_id, metric, what, percent, unit_count in (
            ("Memory", "MemoryUtilization", "main memory", alarms.memory_utilization_percent, 1),
            ("Disk", "DiskUtilization", "disk", alarms.disk_utilization_percent, 1),
            # The metric adds up over the GPUs of an instance: four full GPUs are 400.
            (
                "GPUMemory",
                "GPUMemoryUtilization",
                "the GPUs' memory",
                alarms.gpu_memory_utilization_percent,
                self._variant.gpu_count,
            ),
        ):
            if percent is None:
                continue
            shown = "" if unit_count == 1 else f", added up over {unit_count} GPUs"
            self._alarm(
                construct_id,
                f"use of {what}, in percent{shown}",
                percent * unit_count,
                # A machine always has values. Without them nothing is known, so the alarm goes to
                # INSUFFICIENT_DATA instead of OK.
                missing_data="missing",
                namespace=machine_metrics.ENDPOINTS,
                metric_name=metric,
                dimensions=self._dimensions,
                statistic="Maximum",
                period=_PERIOD_SECONDS,
            )

    def _percentile(self, metric: str, what: str, threshold: float) -> None:
        self._alarm(
            metric,
            what,
            threshold,
            namespace=_INVOCATIONS,
            metric_name=metric,
            dimensions=self._dimensions,
            extended_statistic="p99",
            period=_PERIOD_SECONDS,
        )

    def _rate(
        self, construct_id: str, what: str, threshold: float, metrics: Sequence[_Query]
    ) -> None:
        self._alarm(construct_id, what, threshold, metrics=list(metrics))

    def _alarm(
        self,
        construct_id: str,
        what: str,
        threshold: float,
        # Without requests there are no data points, and nothing failed.
        missing_data: str = "notBreaching",
        **source: object,
    ) -> None:
        self.by_name[_NAMES[construct_id]] = cloudwatch.CfnAlarm(
            self,
            construct_id,
            alarm_description=f"{self._subject}: {what}",
            comparison_operator="GreaterThanThreshold",
            threshold=threshold,
            evaluation_periods=self._plan.alarms.evaluation_periods_minutes,
            treat_missing_data=missing_data,
            alarm_actions=[self._topic_arn],
            ok_actions=[self._topic_arn],
            **source,  # type: ignore[arg-type]  # one of the ways to name what is watched
        )

    def _sum(self, identifier: str, metric_name: str) -> _Query:
        return _Query(
            id=identifier,
            metric_stat=cloudwatch.CfnAlarm.MetricStatProperty(
                metric=cloudwatch.CfnAlarm.MetricProperty(
                    namespace=_INVOCATIONS, metric_name=metric_name, dimensions=self._dimensions
                ),
                period=_PERIOD_SECONDS,
                stat="Sum",
            ),
            return_data=False,
        )
