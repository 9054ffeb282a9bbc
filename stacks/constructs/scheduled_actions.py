"""Scheduled actions of a scalable target."""

from collections.abc import Sequence

from aws_cdk import aws_applicationautoscaling as autoscaling

from slipway.config.sections.scale_to_zero import CopySchedule
from slipway.config.sections.scaling import Schedule


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
