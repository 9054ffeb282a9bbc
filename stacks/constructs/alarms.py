"""Alarms of an endpoint: answers that fail, and answers that are late."""

from __future__ import annotations

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from slipway.planning.plan import DeploymentPlan
from stacks.constructs.hosting import VARIANT_NAME

_NAMESPACE = "AWS/SageMaker"
_PERIOD_SECONDS = 60


class EndpointAlarms(Construct):
    """Each alarm writes to the environment's topic when it is raised and when it is over.

    They name the endpoint by its literal name, as a rollout's alarms must: a reference to the
    endpoint would be circular there.

    Args:
        scope: the endpoint's stack.
        construct_id: name within it.
        plan: thresholds and names.
        topic_arn: where to write.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, plan: DeploymentPlan, topic_arn: str
    ) -> None:
        super().__init__(scope, construct_id)
        dimensions = [
            cloudwatch.CfnAlarm.DimensionProperty(name="EndpointName", value=plan.endpoint_name),
            cloudwatch.CfnAlarm.DimensionProperty(name="VariantName", value=VARIANT_NAME),
        ]
        minutes = plan.alarms.evaluation_periods_minutes
        cloudwatch.CfnAlarm(
            self,
            "ServerErrorRate",
            alarm_description=(
                f"{plan.endpoint_name}: share of invocations that failed on the server's side "
                "(5XX, no answer, broken connection), in percent"
            ),
            metrics=[
                _sum("server_errors", "Invocation5XXErrors", dimensions),
                _sum("client_errors", "Invocation4XXErrors", dimensions),
                _sum("model_errors", "InvocationModelErrors", dimensions),
                _sum("invocations", "Invocations", dimensions),
                # Invocation5XXErrors counts what the model itself answered. A container that died
                # or is late answers nothing: only InvocationModelErrors, which has the 4XX too,
                # counts socket errors and time-outs.
                cloudwatch.CfnAlarm.MetricDataQueryProperty(
                    id="failures",
                    expression="model_errors - client_errors",
                    label="Not answered, or 5XX",
                    return_data=False,
                ),
                cloudwatch.CfnAlarm.MetricDataQueryProperty(
                    id="rate",
                    expression="100 * MAX([server_errors, failures]) / invocations",
                    label="Failed on the server's side (%)",
                    return_data=True,
                ),
            ],
            comparison_operator="GreaterThanThreshold",
            threshold=plan.alarms.server_error_rate_percent,
            evaluation_periods=minutes,
            # Nobody asked, nothing failed.
            treat_missing_data="notBreaching",
            alarm_actions=[topic_arn],
            ok_actions=[topic_arn],
        )
        cloudwatch.CfnAlarm(
            self,
            "ModelLatency",
            alarm_description=(
                f"{plan.endpoint_name}: 99th percentile of the container's answer time, "
                "in microseconds"
            ),
            namespace=_NAMESPACE,
            metric_name="ModelLatency",
            dimensions=dimensions,
            extended_statistic="p99",
            period=_PERIOD_SECONDS,
            comparison_operator="GreaterThanThreshold",
            threshold=plan.alarms.model_latency_p99_microseconds,
            evaluation_periods=minutes,
            treat_missing_data="notBreaching",
            alarm_actions=[topic_arn],
            ok_actions=[topic_arn],
        )


def _sum(
    identifier: str, metric_name: str, dimensions: list[cloudwatch.CfnAlarm.DimensionProperty]
) -> cloudwatch.CfnAlarm.MetricDataQueryProperty:
    return cloudwatch.CfnAlarm.MetricDataQueryProperty(
        id=identifier,
        metric_stat=cloudwatch.CfnAlarm.MetricStatProperty(
            metric=cloudwatch.CfnAlarm.MetricProperty(
                namespace=_NAMESPACE, metric_name=metric_name, dimensions=dimensions
            ),
            period=_PERIOD_SECONDS,
            stat="Sum",
        ),
        return_data=False,
    )
