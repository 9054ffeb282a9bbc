"""Autoscaling of a variant."""

from aws_cdk import aws_applicationautoscaling as autoscaling
from constructs import Construct, IDependable

from slipway.config.sections.scaling import Autoscaling
from slipway.planning.plan import VariantPlan
from slipway.stacks.constructs.scaling_policies import step_policy, tracking_policy, wake_policy
from slipway.stacks.constructs.scheduled_actions import scheduled_actions
from slipway.stacks.constructs.step_scaling import StepScaling, add_policy

_NAMESPACE = "sagemaker"
_DIMENSION = "sagemaker:variant:DesiredInstanceCount"


class VariantScaling(Construct):
    """A scalable target with its policies.

    One keeps the load of an instance at a target value. Another adds instances in larger steps, and
    a third starts the first instance of an empty fleet.

    Args:
        after: resources that must exist before the variant is registered.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        scaling: Autoscaling,
        endpoint: str,
        variant: VariantPlan,
        after: IDependable,
    ) -> None:
        super().__init__(scope, construct_id)
        target = autoscaling.CfnScalableTarget(
            self,
            "Target",
            service_namespace=_NAMESPACE,
            scalable_dimension=_DIMENSION,
            resource_id=f"endpoint/{endpoint}/variant/{variant.name}",
            min_capacity=scaling.min_instance_count,
            max_capacity=scaling.max_instance_count,
            scheduled_actions=scheduled_actions(scaling.schedules),
        )
        # The variant must exist before it is registered, and is deregistered before it is deleted.
        target.node.add_dependency(after)
        add_policy(self, policy=tracking_policy(scaling, endpoint, variant), target_id=target.ref)
        wake = wake_policy(scaling, endpoint, variant)
        steps = {"Load": step_policy(scaling, endpoint, variant), "Zero": wake}
        for name, policy in steps.items():
            if policy is not None:
                StepScaling(self, name, policy=policy, target_id=target.ref)
