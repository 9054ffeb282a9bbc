"""Autoscaling of a variant; step policies and schedules, which copies have as well."""

from collections.abc import Sequence

from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct, IDependable

from slipway.config.alarm_kinds import REQUESTS
from slipway.config.sections.scale_to_zero import CopySchedule
from slipway.config.sections.scaling import Autoscaling, Schedule
from slipway.planning.plan import VariantPlan
from slipway.stacks.constructs.scaling_policies import (
    PERIOD_SECONDS,
    ScalingPolicy,
    StepPolicy,
    step_policy,
    tracking_policy,
    wake_policy,
)

_NAMESPACE = "sagemaker"
_DIMENSION = "sagemaker:variant:DesiredInstanceCount"


class VariantScaling(Construct):
    """A scalable target with its policies.

    One keeps the load of an instance at a target value. Another adds instances in larger steps, and
    a third starts the first instance of an empty fleet.
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


def add_policy(
    scope: Construct, *, policy: ScalingPolicy, target_id: str
) -> autoscaling.CfnScalingPolicy:
    """Adds a policy to a construct, under the policy's own id, and returns it."""
    resource = autoscaling.CfnScalingPolicy(
        scope,
        policy.construct_id,
        policy_name=policy.name,
        policy_type=policy.policy_type,
        scaling_target_id=target_id,
    )
    resource.add_property_override(policy.configuration_member, policy.configuration)
    return resource


def add_alarm(
    scope: Construct,
    construct_id: str,
    policy: StepPolicy,
    resource: autoscaling.CfnScalingPolicy,
) -> cloudwatch.CfnAlarm:
    """Adds the alarm that carries a step policy out, and returns it."""
    return cloudwatch.CfnAlarm(
        scope,
        construct_id,
        alarm_description=policy.description,
        namespace=policy.metric.namespace,
        metric_name=policy.metric.name,
        dimensions=[
            cloudwatch.CfnAlarm.DimensionProperty(name=name, value=value)
            for name, value in policy.metric.dimensions.items()
        ],
        statistic=policy.metric.statistic,
        period=PERIOD_SECONDS,
        evaluation_periods=policy.evaluation_periods,
        # The lowest step begins at the threshold itself.
        comparison_operator="GreaterThanOrEqualToThreshold",
        threshold=policy.threshold,
        # Without data there is no load.
        treat_missing_data=REQUESTS.missing_data,
        alarm_actions=[resource.ref],
    )


class StepScaling(Construct):
    """A step policy of a scalable target, with its alarm.

    Application Auto Scaling makes the alarms of target tracking itself. A step policy does nothing
    without an alarm that names it.

    The alarm's name begins with the stack's name and the ids of the constructs, as CloudFormation
    generates it. The function around the endpoint's update may change alarms of that name.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, policy: StepPolicy, target_id: str
    ) -> None:
        super().__init__(scope, construct_id)
        resource = add_policy(self, policy=policy, target_id=target_id)
        add_alarm(self, "Alarm", policy, resource)


def scheduled_actions(
    schedules: Sequence[Schedule | CopySchedule],
) -> list[autoscaling.CfnScalableTarget.ScheduledActionProperty] | None:
    """Returns the actions that set other bounds at certain times; None without any."""
    return [_scheduled_action(each) for each in schedules] or None


def _scheduled_action(
    schedule: Schedule | CopySchedule,
) -> autoscaling.CfnScalableTarget.ScheduledActionProperty:
    low, high = schedule.bounds
    return autoscaling.CfnScalableTarget.ScheduledActionProperty(
        scheduled_action_name=schedule.name,
        schedule=schedule.at,
        timezone=schedule.zone_of_expression,
        scalable_target_action=autoscaling.CfnScalableTarget.ScalableTargetActionProperty(
            min_capacity=low, max_capacity=high
        ),
    )
