"""The scaling policies of a variant.

A policy belongs to the variant's instance types: its name and its logical id have their digest. A
variant is deregistered while its types change, and its policies go with it. CloudFormation would
take them for unchanged. Under another id it makes new ones, and their alarms follow. The name
differs too, because CloudFormation makes no policy under a name that is taken:
https://github.com/pulumi/pulumi-aws-native/issues/1637

Steps add to target tracking. Where two policies of a target would change the capacity, Application
Auto Scaling takes the larger one. Sources, read 2026-11-24:

- Both kinds of policies suit production variants:
  https://docs.aws.amazon.com/sagemaker/latest/dg/endpoint-auto-scaling-policy.html
- Several policies of one target:
  https://docs.aws.amazon.com/autoscaling/application/userguide/target-tracking-scaling-policy-overview.html
"""

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

from slipway.config.alarm_kinds import MACHINES, REQUESTS
from slipway.config.alarms_of_modes import QUEUE
from slipway.config.sections.scaling import Autoscaling
from slipway.planning.asynchronous import (
    BACKLOG_PER_INSTANCE,
    BACKLOG_WITHOUT_CAPACITY,
    WAKE_POLICY,
)
from slipway.planning.plan import VariantPlan

_WAKE_COOLDOWN_SECONDS = 300
PERIOD_SECONDS = 60
"""CloudWatch takes shorter periods of AWS's own metrics only from Application Auto Scaling."""


@dataclass(frozen=True)
class ScalingMetric:
    """A metric that a policy follows, perhaps under a name that Application Auto Scaling has."""

    namespace: str
    name: str
    statistic: str
    dimensions: Mapping[str, str]
    predefined_type: str | None = None

    @property
    def listed_dimensions(self) -> list[dict[str, str]]:
        return [{"Name": name, "Value": value} for name, value in self.dimensions.items()]


@dataclass(frozen=True)
class ScalingPolicy(ABC):
    """A policy of a variant, whose id and name begin with the kind.

    `of_types` is a digest of the variant's instance types; empty for copies, which have none. For
    the wake of an adapter it is the adapter's name.
    """

    # PolicyType; the name of the configuration's member begins with it.
    policy_type: ClassVar[str]
    kind: str
    metric: ScalingMetric
    of_types: str = field(default="", kw_only=True)

    @property
    def construct_id(self) -> str:
        return self.kind + self.of_types

    @property
    def name(self) -> str:
        name = re.sub(r"(?<!^)(?=[A-Z])", "-", self.kind).lower()
        return f"{name}-{self.of_types}" if self.of_types else name

    @property
    @abstractmethod
    def configuration(self) -> dict[str, Any]:
        """Returns the policy's configuration."""

    @property
    def configuration_member(self) -> str:
        return f"{self.policy_type}PolicyConfiguration"


@dataclass(frozen=True)
class TrackingPolicy(ScalingPolicy):
    """Keeps a metric of each instance at a target value, which is in the metric's unit."""

    policy_type = "TargetTrackingScaling"
    target_value: float
    scale_in_cooldown_seconds: int
    scale_out_cooldown_seconds: int

    @property
    def configuration(self) -> dict[str, Any]:
        metric = self.metric
        specification: dict[str, Any] = {
            "CustomizedMetricSpecification": {
                "Dimensions": metric.listed_dimensions,
                "MetricName": metric.name,
                "Namespace": metric.namespace,
                "Statistic": metric.statistic,
            }
        }
        if metric.predefined_type is not None:
            specification = {
                "PredefinedMetricSpecification": {"PredefinedMetricType": metric.predefined_type}
            }
        return {
            **specification,
            "ScaleInCooldown": self.scale_in_cooldown_seconds,
            "ScaleOutCooldown": self.scale_out_cooldown_seconds,
            "TargetValue": self.target_value,
        }


@dataclass(frozen=True)
class StepPolicy(ScalingPolicy):
    """Adds a number of instances by how far a metric is above a threshold.

    The steps say from which value of the metric, in ascending order. The alarm needs so many
    minutes at the value of the lowest step.
    """

    policy_type = "StepScaling"
    steps: tuple[tuple[float, int], ...]
    cooldown_seconds: int
    description: str
    evaluation_periods: int = 1

    @property
    def threshold(self) -> float:
        return self.steps[0][0]

    @property
    def configuration(self) -> dict[str, Any]:
        """Returns StepScalingPolicyConfiguration; its bounds count from the threshold."""
        adjustments: list[dict[str, float]] = [
            {"MetricIntervalLowerBound": begin - self.threshold, "ScalingAdjustment": added}
            for begin, added in self.steps
        ]
        for lower, upper in pairwise(adjustments):
            lower["MetricIntervalUpperBound"] = upper["MetricIntervalLowerBound"]
        return {
            "AdjustmentType": "ChangeInCapacity",
            "Cooldown": self.cooldown_seconds,
            "MetricAggregationType": "Maximum",
            "StepAdjustments": adjustments,
        }


def tracking_policy(scaling: Autoscaling, endpoint: str, variant: VariantPlan) -> TrackingPolicy:
    dimensions = {"EndpointName": endpoint, "VariantName": variant.name}
    target = scaling.target_value
    if scaling.target_concurrent_requests_per_instance is not None:
        construct_id = "ConcurrentRequestsPerInstance"
        metric = ScalingMetric(
            REQUESTS.namespace,
            "ConcurrentRequestsPerModel",
            "Maximum",
            dimensions,
            "SageMakerVariantConcurrentRequestsPerModelHighResolution",
        )
    elif scaling.target_invocations_per_instance_per_minute is not None:
        construct_id = "InvocationsPerInstance"
        metric = ScalingMetric(
            REQUESTS.namespace,
            construct_id,
            "Sum",
            dimensions,
            "SageMakerVariantInvocationsPerInstance",
        )
    elif scaling.target_gpu_utilization_percent is not None:
        construct_id = "GpuUtilization"
        metric = ScalingMetric(MACHINES.namespace, "GPUUtilization", "Average", dimensions)
        # The metric adds up over the GPUs of an instance.
        target *= variant.gpu_count
    else:
        # AWS's guide tracks the backlog so, and there is no predefined metric:
        # https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference-autoscale.html
        construct_id = "BacklogPerInstance"
        metric = ScalingMetric(QUEUE.namespace, BACKLOG_PER_INSTANCE, "Average", of_queue(endpoint))
    return TrackingPolicy(
        construct_id,
        metric,
        target,
        scaling.scale_in_cooldown_seconds,
        scaling.scale_out_cooldown_seconds,
        of_types=digest_of(variant.instance_types),
    )


def step_policy(scaling: Autoscaling, endpoint: str, variant: VariantPlan) -> StepPolicy | None:
    """Returns the step policy of a variant, by the metric of its target; None without steps."""
    if not scaling.steps:
        return None
    tracking = tracking_policy(scaling, endpoint, variant)
    lowest = scaling.steps[0].from_times_target
    return StepPolicy(
        "Steps",
        tracking.metric,
        tuple(
            (step.from_times_target * tracking.target_value, step.add_instances)
            for step in scaling.steps
        ),
        scaling.scale_out_cooldown_seconds,
        f"{endpoint}, {variant.name}: {lowest:g} times the load that autoscaling keeps, "
        "which adds instances",
        of_types=tracking.of_types,
    )


def of_queue(endpoint: str) -> dict[str, str]:
    """Returns the only dimension that the metrics of a queue have."""
    return {"EndpointName": endpoint}


def wake_policy(scaling: Autoscaling, endpoint: str, variant: VariantPlan) -> StepPolicy | None:
    """Returns the policy that starts the first instance; None for a fleet that never is empty.

    Target tracking alone starts no instance until the backlog is above the target. AWS's guide has
    the same pause: an instance takes minutes to start, and its queue has no capacity until then.
    Source, read 2026-11-24:
    https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference-autoscale.html
    """
    if not scaling.wakes:
        return None
    return StepPolicy(
        WAKE_POLICY.capitalize(),
        ScalingMetric(QUEUE.namespace, BACKLOG_WITHOUT_CAPACITY, "Average", of_queue(endpoint)),
        ((1, 1),),
        max(_WAKE_COOLDOWN_SECONDS, scaling.scale_out_cooldown_seconds),
        f"{endpoint}: requests in the queue and no instance, which starts one",
        of_types=digest_of(variant.instance_types),
    )


def digest_of(value: object) -> str:
    """Returns eight digits that differ with a value of JSON."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:8]
