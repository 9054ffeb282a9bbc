"""Alarms of a variant: the rows of the table of alarms that the model has a threshold for."""

from collections.abc import Collection, Iterator
from typing import Any

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from slipway.config.alarm_kinds import REQUESTS, Metric, MetricGroup, Watch
from slipway.config.alarms_of_modes import watch_of
from slipway.config.capacity_alarm import CAPACITY_WATCHES, MARGIN
from slipway.config.sections.alarms import ALARM_KINDS
from slipway.planning.plan import DeploymentPlan, VariantPlan

PERIOD_SECONDS = 60
_Query = cloudwatch.CfnAlarm.MetricDataQueryProperty


class VariantAlarms(Construct):
    """Alarms, each of which notifies the environment's topic when it is raised and when it ends.

    They name the endpoint by its literal name, because a reference to the endpoint would be
    circular in a rollout. `names` and `by_name` have the names of `rollout.rollback_alarms`.
    `every` has the alarm at maximum capacity as well. `config_name` is that of the only fleet that
    is watched; None for every fleet of the endpoint.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        plan: DeploymentPlan,
        variant: VariantPlan,
        topic_arn: str,
        names: Collection[str] = ALARM_KINDS,
        config_name: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._plan, self._variant_name = plan, variant.name
        self._config_name = config_name
        settings = plan.config.alarms
        subject = plan.stack_name
        if len(plan.variants) > 1:
            subject += f", {variant.name}"
        if config_name is not None:
            subject += ", the newest fleet alone"
        self.by_name: dict[str, cloudwatch.CfnAlarm] = {}
        self.every: list[cloudwatch.CfnAlarm] = []
        for name in names:
            kind = ALARM_KINDS[name]
            watch = watch_of(kind, plan.config.endpoint.mode)
            threshold = settings.metric_threshold(kind, variant.gpu_count)
            if threshold is None or watch is None:
                continue
            description = f"{subject}: {_description(watch, variant)}"
            self.by_name[name] = self._alarm(watch, plan, description, threshold, topic_arn)
        # AWS publishes no size of a single fleet.
        if config_name is None and (maximum := plan.at_max_capacity) is not None:
            watch = CAPACITY_WATCHES[plan.config.endpoint.mode]
            description = f"{subject}: {watch.description}, of at most {maximum}"
            self._alarm(watch, plan, description, maximum - MARGIN, topic_arn)

    def _alarm(
        self,
        watch: Watch,
        plan: DeploymentPlan,
        description: str,
        threshold: float,
        topic_arn: str,
    ) -> cloudwatch.CfnAlarm:
        alarm = cloudwatch.CfnAlarm(
            self,
            watch.construct_id,
            alarm_description=description,
            comparison_operator="GreaterThanThreshold",
            threshold=threshold,
            evaluation_periods=plan.config.alarms.evaluation_periods_minutes,
            treat_missing_data=watch.group.missing_data,
            alarm_actions=[topic_arn],
            ok_actions=[topic_arn],
            **self._watched(watch),
        )
        self.every.append(alarm)
        return alarm

    def _watched(self, watch: Watch) -> dict[str, Any]:
        """Returns one of the ways in which an alarm names its metrics."""
        if watch.formulas:
            return {"metrics": list(self._queries(watch))}
        (metric,) = watch.metrics
        is_percentile = metric.statistic.startswith("p")
        return {
            "namespace": watch.group.namespace,
            "metric_name": metric.name,
            "dimensions": self._dimensions(watch.group),
            "extended_statistic" if is_percentile else "statistic": metric.statistic,
            "period": PERIOD_SECONDS,
        }

    def _dimensions(self, group: MetricGroup) -> list[cloudwatch.CfnAlarm.DimensionProperty]:
        dimensions = metric_dimensions(self._plan, self._variant_name, group)
        if self._config_name is not None:
            dimensions["EndpointConfigName"] = self._config_name
        return [
            cloudwatch.CfnAlarm.DimensionProperty(name=name, value=value)
            for name, value in dimensions.items()
        ]

    def _queries(self, watch: Watch) -> Iterator[_Query]:
        for metric in watch.metrics:
            statistic = self._statistic(metric, watch.group)
            yield _Query(id=metric.query, metric_stat=statistic, return_data=False)
        for formula in watch.formulas:
            yield _Query(
                id=formula.query,
                expression=formula.expression,
                label=formula.label,
                return_data=formula is watch.formulas[-1],
            )

    def _statistic(
        self, metric: Metric, group: MetricGroup
    ) -> cloudwatch.CfnAlarm.MetricStatProperty:
        return cloudwatch.CfnAlarm.MetricStatProperty(
            metric=cloudwatch.CfnAlarm.MetricProperty(
                namespace=group.namespace,
                metric_name=metric.name,
                dimensions=self._dimensions(group),
            ),
            period=PERIOD_SECONDS,
            stat=metric.statistic,
        )


def metric_dimensions(plan: DeploymentPlan, variant: str, group: MetricGroup) -> dict[str, str]:
    """Returns the dimensions with which SageMaker publishes a group of metrics.

    Requests to an inference component have no variant. Its machines have one.
    https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch.html (2026-11-24)
    """
    if plan.component is not None and group is REQUESTS:
        return {"InferenceComponentName": plan.component.name}
    of_variant = {"VariantName": variant} if group.of_variant else {}
    return {"EndpointName": plan.endpoint_name, **of_variant}


def _description(watch: Watch, variant: VariantPlan) -> str:
    if watch.gpu_part and variant.gpu_count > 1:
        return f"{watch.description}, added up over {variant.gpu_count} GPUs"
    return watch.description
