"""Autoscaling of a variant."""

import re
from dataclasses import dataclass

from aws_cdk import aws_applicationautoscaling as autoscaling
from constructs import Construct, IDependable

from slipway.planning.plan import AutoscalingPlan, SchedulePlan

_NAMESPACE = "sagemaker"
_DIMENSION = "sagemaker:variant:DesiredInstanceCount"


@dataclass(frozen=True)
class TrackingPolicy:
    """The metric of a scaling policy, and the value that it keeps.

    Args:
        construct_id: id of the policy.
        metric_type: predefined metric.
        target_value: in the metric's unit.
    """

    construct_id: str
    metric_type: str
    target_value: float

    @property
    def name(self) -> str:
        """Returns the name of the policy."""
        return re.sub(r"(?<!^)(?=[A-Z])", "-", self.construct_id).lower()


class VariantScaling(Construct):
    """A scalable target with one policy, which keeps the load of an instance at a target value.

    Args:
        scope: the endpoint's stack.
        construct_id: name within the scope.
        scaling: bounds, target and pauses.
        resource_id: the variant's id in Application Auto Scaling.
        after: resources that must exist before the variant is registered.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        scaling: AutoscalingPlan,
        resource_id: str,
        after: IDependable,
    ) -> None:
        super().__init__(scope, construct_id)
        target = autoscaling.CfnScalableTarget(
            self,
            "Target",
            service_namespace=_NAMESPACE,
            scalable_dimension=_DIMENSION,
            resource_id=resource_id,
            min_capacity=scaling.min_instance_count,
            max_capacity=scaling.max_instance_count,
            scheduled_actions=[_scheduled_action(each) for each in scaling.schedules] or None,
        )
        # The variant must exist before it is registered, and is deregistered before it is deleted.
        target.node.add_dependency(after)
        policy = tracking_policy(scaling)
        metric = autoscaling.CfnScalingPolicy.PredefinedMetricSpecificationProperty(
            predefined_metric_type=policy.metric_type
        )
        autoscaling.CfnScalingPolicy(
            self,
            policy.construct_id,
            policy_name=policy.name,
            policy_type="TargetTrackingScaling",
            scaling_target_id=target.ref,
            target_tracking_scaling_policy_configuration=(
                autoscaling.CfnScalingPolicy.TargetTrackingScalingPolicyConfigurationProperty(
                    target_value=policy.target_value,
                    predefined_metric_specification=metric,
                    scale_in_cooldown=scaling.scale_in_cooldown_seconds,
                    scale_out_cooldown=scaling.scale_out_cooldown_seconds,
                )
            ),
        )


def _scheduled_action(
    schedule: SchedulePlan,
) -> autoscaling.CfnScalableTarget.ScheduledActionProperty:
    return autoscaling.CfnScalableTarget.ScheduledActionProperty(
        scheduled_action_name=schedule.name,
        schedule=schedule.expression,
        timezone=schedule.time_zone,
        scalable_target_action=autoscaling.CfnScalableTarget.ScalableTargetActionProperty(
            min_capacity=schedule.min_instance_count, max_capacity=schedule.max_instance_count
        ),
    )


def tracking_policy(scaling: AutoscalingPlan) -> TrackingPolicy:
    """Returns the policy of a plan."""
    if scaling.target_concurrent_requests_per_instance is not None:
        return TrackingPolicy(
            "ConcurrentRequestsPerInstance",
            "SageMakerVariantConcurrentRequestsPerModelHighResolution",
            scaling.target_concurrent_requests_per_instance,
        )
    if scaling.target_invocations_per_instance_per_minute is None:
        raise ValueError("the plan has no scaling target")
    return TrackingPolicy(
        "InvocationsPerInstance",
        "SageMakerVariantInvocationsPerInstance",
        scaling.target_invocations_per_instance_per_minute,
    )
