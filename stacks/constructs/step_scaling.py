"""A step policy, and the alarm that carries it out."""

from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from slipway.config.alarm_kinds import REQUESTS
from slipway.stacks.constructs.scaling_policies import PERIOD_SECONDS, ScalingPolicy, StepPolicy


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
