"""Autoscaling of a variant."""

from __future__ import annotations

import re

from aws_cdk import aws_applicationautoscaling as autoscaling
from constructs import Construct

from slipway.planning.plan import AutoscalingPlan
from stacks.constructs.hosting import ScalableVariant

_NAMESPACE = "sagemaker"
_DIMENSION = "sagemaker:variant:DesiredInstanceCount"


class VariantScaling(Construct):
    """A scalable target and one policy: hold what an instance carries at a target.

    Args:
        scope: the endpoint's stack.
        construct_id: name within it.
        scaling: bounds, target and pauses.
        variant: what to scale.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        scaling: AutoscalingPlan,
        variant: ScalableVariant,
    ) -> None:
        super().__init__(scope, construct_id)
        target = autoscaling.CfnScalableTarget(
            self,
            "Target",
            service_namespace=_NAMESPACE,
            scalable_dimension=_DIMENSION,
            resource_id=variant.resource_id,
            min_capacity=scaling.min_instance_count,
            max_capacity=scaling.max_instance_count,
        )
        # The variant must exist before it can be registered, and be deregistered before it goes.
        target.add_resource_dependency(variant.endpoint)
        construct, metric_type, value = _tracked(scaling)
        metric = autoscaling.CfnScalingPolicy.PredefinedMetricSpecificationProperty(
            predefined_metric_type=metric_type
        )
        autoscaling.CfnScalingPolicy(
            self,
            construct,
            policy_name=_kebab(construct),
            policy_type="TargetTrackingScaling",
            scaling_target_id=target.ref,
            target_tracking_scaling_policy_configuration=(
                autoscaling.CfnScalingPolicy.TargetTrackingScalingPolicyConfigurationProperty(
                    target_value=value,
                    predefined_metric_specification=metric,
                    scale_in_cooldown=scaling.scale_in_cooldown_seconds,
                    scale_out_cooldown=scaling.scale_out_cooldown_seconds,
                )
            ),
        )


def _tracked(scaling: AutoscalingPlan) -> tuple[str, str, float]:
    """Construct id, predefined metric and target value of the policy."""
    if scaling.target_concurrent_requests_per_instance is not None:
        return (
            "ConcurrentRequestsPerInstance",
            "SageMakerVariantConcurrentRequestsPerModelHighResolution",
            scaling.target_concurrent_requests_per_instance,
        )
    if scaling.target_invocations_per_instance_per_minute is None:
        raise ValueError("the plan has no scaling target")
    return (
        "InvocationsPerInstance",
        "SageMakerVariantInvocationsPerInstance",
        scaling.target_invocations_per_instance_per_minute,
    )


def _kebab(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()
