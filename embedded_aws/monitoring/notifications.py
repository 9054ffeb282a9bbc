"""The actions of an alarm whose state changes: it publishes to SNS topics.

The message is the JSON object that CloudWatch publishes, as its subscribers quote it. The evaluator
carries out scaling policies. Every other kind of action (EC2, Lambda, Systems Manager) is not
carried out, and the log says so each time. So is a topic with an HTTP subscriber elsewhere,
because moto would really post to it.
"""

import functools
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import botocore.session
from botocore.exceptions import BotoCoreError, ClientError

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.identity import ACCOUNT_ID
from slipway.embedded_aws.monitoring.definitions import described
from slipway.embedded_aws.monitoring.evaluation import State
from slipway.embedded_aws.monitoring.reasons import timestamp

logger = logging.getLogger(__name__)

# https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
_SUBJECT_CHARACTERS = 100


@dataclass(frozen=True)
class Notification:
    """One change of state, with everything that its actions, which are ARNs, need."""

    alarm_name: str
    region: str
    actions: tuple[str, ...]
    subject: str
    message: str


def notification_of(alarm: Any, old_state: str) -> Notification | None:
    """Returns the notification for an alarm's latest change; None if it has no action."""
    by_state: Mapping[str, Sequence[str]] = {
        State.ALARM: alarm.alarm_actions,
        State.OK: alarm.ok_actions,
        State.INSUFFICIENT_DATA: alarm.insufficient_data_actions,
    }
    actions = tuple(by_state[alarm.state_value])
    if not actions or not alarm.actions_enabled:
        return None
    region_name = _region_name(alarm.region_name)
    message = {
        "AlarmName": alarm.name,
        "AlarmDescription": alarm.description,
        "AWSAccountId": ACCOUNT_ID,
        "AlarmConfigurationUpdatedTimestamp": _moment(alarm.configuration_updated_timestamp),
        "NewStateValue": alarm.state_value,
        "NewStateReason": alarm.state_reason,
        "StateChangeTime": _moment(alarm.state_updated_timestamp),
        "Region": region_name,
        "AlarmArn": alarm.alarm_arn,
        "OldStateValue": old_state,
        "OKActions": alarm.ok_actions,
        "AlarmActions": alarm.alarm_actions,
        "InsufficientDataActions": alarm.insufficient_data_actions,
        "Trigger": _trigger(alarm),
    }
    subject = f'{alarm.state_value}: "{alarm.name}" in {region_name}'
    return Notification(
        alarm_name=alarm.name,
        region=alarm.region_name,
        actions=actions,
        subject=subject[:_SUBJECT_CHARACTERS],
        message=json.dumps(message),
    )


class Notifier:
    def __init__(self, clients: LoopbackClients) -> None:
        self._clients = clients

    def send(self, notification: Notification | None) -> None:
        """Publishes to every topic; failures are logged, because no caller waits for the result."""
        if notification is not None:
            for action in notification.actions:
                self._act(notification, action)

    def _act(self, notification: Notification, action: str) -> None:
        if is_scaling_policy(action):
            return  # after each evaluation, and not only when the state changes
        if action.split(":")[2:3] != ["sns"]:
            logger.warning(
                'Alarm "%s" is in a new state; its action %s was not carried out: the embedded AWS '
                "carries out SNS topics and scaling policies only.",
                notification.alarm_name,
                action,
            )
            return
        sns = self._clients.client("sns", notification.region)
        try:
            outside = _outside_subscribers(sns, action)
            if outside:
                logger.warning(
                    'Alarm "%s" is in a new state; %s was not told: it has the subscriber %s, and '
                    "the embedded AWS reaches no network.",
                    notification.alarm_name,
                    action,
                    outside[0],
                )
                return
            sns.publish(TopicArn=action, Subject=notification.subject, Message=notification.message)
        except (ClientError, BotoCoreError) as error:
            logger.warning(
                'Alarm "%s" could not write to %s: %s', notification.alarm_name, action, error
            )


def is_scaling_policy(action: str) -> bool:
    return action.split(":")[2:3] == ["autoscaling"] and ":scalingPolicy:" in action


def _outside_subscribers(sns: Any, topic: str) -> list[str]:
    """Returns subscribers on other machines, which moto would really post to, and page somebody."""
    pages = sns.get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic)
    endpoints = [
        subscription["Endpoint"]
        for page in pages
        for subscription in page["Subscriptions"]
        if subscription["Protocol"] in ("http", "https")
    ]
    return [e for e in endpoints if urlsplit(e).hostname not in ("localhost", "127.0.0.1", "::1")]


def _trigger(alarm: Any) -> dict[str, Any]:
    shared = {
        "Period": alarm.period,
        "EvaluationPeriods": alarm.evaluation_periods,
        "DatapointsToAlarm": alarm.datapoints_to_alarm,
        "ComparisonOperator": alarm.comparison_operator,
        "Threshold": alarm.threshold,
        "TreatMissingData": alarm.treat_missing_data or "",
        "EvaluateLowSampleCountPercentile": alarm.evaluate_low_sample_count_percentile or "",
    }
    if alarm.datapoints_to_alarm is None:
        del shared["DatapointsToAlarm"]
    if alarm.metric_data_queries:
        queries = [_query(query) for query in described(alarm)["Metrics"]]
        periods = [query["MetricStat"]["Period"] for query in queries if "MetricStat" in query]
        return {**shared, "Period": periods[0], "Metrics": queries}
    extended = alarm.extended_statistic
    statistic = (
        {"StatisticType": "ExtendedStatistic", "ExtendedStatistic": extended}
        if extended
        else {"StatisticType": "Statistic", "Statistic": alarm.statistic.upper()}
    )
    return {
        "MetricName": alarm.metric_name,
        "Namespace": alarm.namespace,
        **statistic,
        "Unit": alarm.unit,
        "Dimensions": _dimensions(described(alarm)["Dimensions"]),
        **shared,
    }


def _query(query: dict[str, Any]) -> dict[str, Any]:
    if (stat := query.get("MetricStat")) is not None:
        stat["Metric"]["Dimensions"] = _dimensions(stat["Metric"]["Dimensions"])
    query.pop("Period", None)
    return {"ReturnData": True, **query}


def _dimensions(dimensions: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    return [{"value": dimension["Value"], "name": dimension["Name"]} for dimension in dimensions]


def _moment(naive: datetime) -> str:
    return timestamp(naive.replace(tzinfo=UTC))


@functools.lru_cache(maxsize=64)
def _region_name(region: str) -> str:
    """Returns `US East (N. Virginia)` for us-east-1; the code itself if botocore knows no name."""
    partitions = botocore.session.Session().get_data("endpoints")["partitions"]
    for partition in partitions:
        if region in partition["regions"]:
            name: str = partition["regions"][region]["description"]
            return name
    return region
