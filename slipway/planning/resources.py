"""Counts the resources of a model's stack."""

from slipway.config.sections.alarms import ALARM_KINDS
from slipway.planning.plan import DeploymentPlan
from slipway.planning.rollout import new_fleet_alarms


def resources_of(plan: DeploymentPlan) -> dict[str, int]:
    """Returns the stack's resources: CloudFormation's types, and how many of each."""
    if plan.is_adapter:
        return {
            "AWS::ApplicationAutoScaling::ScalingPolicy": 1,
            "AWS::CloudWatch::Alarm": 1 + _alarms_of_a_variant(plan),
            "AWS::SageMaker::InferenceComponent": 1,
        }
    endpoint, scaling = plan.config.endpoint, plan.config.autoscaling
    variants, every = len(plan.variants), plan.every_variant
    scaled = variants if scaling is not None else 0
    stepped = variants * scaling.step_policy_count if scaling is not None else 0
    # A component has a target and a policy that tracks the load. If it may sleep, it also has a
    # policy with an alarm that wakes it.
    copies = 0 if plan.component is None else 1
    woken = int(plan.component is not None and plan.component.sleeps)
    # A guest has no endpoint, no role, and no function for updates.
    own = int(plan.host is None)
    # An existing role gets no policies.
    made = own * int(endpoint.execution_role_arn is None)
    key, queue = endpoint.volume_key_arn, endpoint.queue
    has_password = any(each.credentials_function_arn for each in plan.every_image)
    inside = (endpoint.core_dump, endpoint.ssm_access)
    with_rights = (plan.vpc, key, plan.capture, queue, plan.watched_stacks, has_password, *inside)
    found = {
        "AWS::ApplicationAutoScaling::ScalableTarget": scaled + copies,
        "AWS::ApplicationAutoScaling::ScalingPolicy": scaled + stepped + copies + woken,
        "AWS::CloudWatch::Alarm": variants * _alarms_of_a_variant(plan) + stepped + woken,
        "AWS::CloudWatch::Dashboard": int(plan.dashboard_name is not None),
        "AWS::IAM::Policy": made * sum(map(bool, with_rights)),
        "AWS::IAM::Role": own + made,
        "AWS::Lambda::Function": own,
        "AWS::Logs::LogGroup": 1 + own,
        "AWS::SageMaker::Endpoint": own,
        "AWS::SageMaker::EndpointConfig": own,
        "AWS::SageMaker::InferenceComponent": copies,
        "AWS::SageMaker::Model": 1
        + sum(plan.served_by(each) is not plan for each in (*every, *plan.overrides)),
        "AWS::SSM::Parameter": made * bool(plan.guests),
        # Before the endpoint is updated, after it, and one that remembers scalable variants.
        "Custom::SlipwayScaling": (3 - copies) * own,
    }
    return {name: count for name, count in found.items() if count}


def _alarms_of_a_variant(plan: DeploymentPlan) -> int:
    thresholds = (plan.config.alarms.threshold(kind) for kind in ALARM_KINDS.values())
    alarms = sum(threshold is not None for threshold in thresholds)
    guards = 0 if plan.rollout is None else len(new_fleet_alarms(plan.config))
    return alarms + (plan.at_max_capacity is not None) + guards
