"""The scaling policies of a variant, in the form of Application Auto Scaling's API.

The template and the function around an endpoint's update both use this form. The function puts the
policies again after it has registered a target again.

Steps add to target tracking. Where two policies of a target would change the capacity, Application
Auto Scaling takes the larger one. Sources, read 2026-11-24:

- Both kinds of policies suit production variants:
  https://docs.aws.amazon.com/sagemaker/latest/dg/endpoint-auto-scaling-policy.html
- Several policies of one target:
  https://docs.aws.amazon.com/autoscaling/application/userguide/target-tracking-scaling-policy-overview.html
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from slipway.config.alarm_kinds import MACHINES, REQUESTS
from slipway.config.async_alarms import QUEUE
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
    """A metric that a policy follows.

    Args:
        predefined_type: Application Auto Scaling's own name for it; None without one.
    """

    namespace: str
    name: str
    statistic: str
    dimensions: Mapping[str, str]
    predefined_type: str | None = None

    @property
    def listed_dimensions(self) -> list[dict[str, str]]:
        """Returns the dimensions in the form of the API."""
        return [{"Name": name, "Value": value} for name, value in self.dimensions.items()]


@dataclass(frozen=True)
class ScalingPolicy(ABC):
    """A policy of a variant.

    Args:
        construct_id: id of the policy; its name follows from it.
    """

    # PolicyType; the name of the configuration's member begins with it.
    policy_type: ClassVar[str]
    construct_id: str
    metric: ScalingMetric

    @property
    def name(self) -> str:
        """Returns PolicyName."""
        return re.sub(r"(?<!^)(?=[A-Z])", "-", self.construct_id).lower()

    @property
    @abstractmethod
    def configuration(self) -> dict[str, Any]:
        """Returns the policy's configuration."""

    @property
    def as_request(self) -> dict[str, Any]:
        """Returns the members of PutScalingPolicy beside the target."""
        return {
            "PolicyName": self.name,
            "PolicyType": self.policy_type,
            self.configuration_member: self.configuration,
        }

    @property
    def configuration_member(self) -> str:
        """Returns the name of the member that has the configuration."""
        return f"{self.policy_type}PolicyConfiguration"


@dataclass(frozen=True)
class TrackingPolicy(ScalingPolicy):
    """Keeps a metric of each instance at a target value.

    Args:
        target_value: in the metric's unit.
    """

    policy_type = "TargetTrackingScaling"
    target_value: float
    scale_in_cooldown_seconds: int
    scale_out_cooldown_seconds: int

    @property
    def configuration(self) -> dict[str, Any]:
        """Returns TargetTrackingScalingPolicyConfiguration."""
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

    Args:
        steps: from which value of the metric, and how many instances; in ascending order.
        evaluation_periods: minutes at the lowest step's value that raise the alarm.
    """

    policy_type = "StepScaling"
    steps: tuple[tuple[float, int], ...]
    cooldown_seconds: int
    description: str
    evaluation_periods: int = 1

    @property
    def threshold(self) -> float:
        """Returns the value from which the lowest step applies."""
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
    """Returns the target tracking policy of a variant."""
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
    )


def of_queue(endpoint: str) -> dict[str, str]:
    """Returns the only dimension that the metrics of a queue have."""
    return {"EndpointName": endpoint}


def wake_policy(scaling: Autoscaling, endpoint: str) -> StepPolicy | None:
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
    )


def step_policies(scaling: Autoscaling, endpoint: str, variant: VariantPlan) -> list[StepPolicy]:
    """Returns the policies of a variant that need an alarm."""
    found = (step_policy(scaling, endpoint, variant), wake_policy(scaling, endpoint))
    return [policy for policy in found if policy is not None]


def policies_of(scaling: Autoscaling, endpoint: str, variant: VariantPlan) -> list[ScalingPolicy]:
    """Returns every policy of a variant."""
    tracking = tracking_policy(scaling, endpoint, variant)
    return [tracking, *step_policies(scaling, endpoint, variant)]
