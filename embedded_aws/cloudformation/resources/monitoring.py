"""Alarms, dashboards and log groups."""

import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError
from moto.logs.models import logs_backends

from slipway.embedded_aws.cloudformation.resources.base import (
    ChangeRefusedError,
    Physical,
    Properties,
    ResourceContext,
    ResourceFailedError,
    ResourceHandler,
    changed,
    input_shape,
    selected,
    tag_map,
)
from slipway.embedded_aws.iam.permissions import listed, matches

_NAME_LENGTH = 255
# Members of PutMetricAlarm that nothing here evaluates.
_NOT_EVALUATED = {
    "ActionConfiguration",
    "EvaluationCriteria",
    "EvaluationInterval",
    "EvaluationWindow",
    "WarmUpConfiguration",
}
# The operations that CloudWatch Logs calls with the log group as the encryption context.
_KEY_ACTIONS = ("kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey")
_KEY_CONTEXT = "kms:encryptioncontext:aws:logs:arn"
_POSITIVE = frozenset({"ArnEquals", "ArnLike", "StringEquals", "StringLike"})


class AlarmHandler(ResourceHandler):
    type_name = "AWS::CloudWatch::Alarm"
    service = "cloudwatch"
    deletion = ("DeleteAlarms", "AlarmNames")
    gone = ("ResourceNotFound",)
    properties = frozenset(input_shape(service, "PutMetricAlarm").members) - _NOT_EVALUATED
    name_property = "AlarmName"
    attributes = frozenset({"Arn"})

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        name = properties.get("AlarmName") or context.physical_name(maximum=_NAME_LENGTH)
        if context.api.describe_alarms(AlarmNames=[name])["MetricAlarms"]:
            raise ResourceFailedError(f"{name} already exists")
        context.call("PutMetricAlarm", {**properties, "AlarmName": name})
        return Physical(name, {"Arn": context.arn("cloudwatch", f"alarm:{name}")})

    def update(self, context: ResourceContext, old: Properties, new: Properties) -> None:
        """Puts the alarm again; tags have their own calls."""
        request = {**new, "AlarmName": context.physical_id, "Tags": None}
        context.call("PutMetricAlarm", request)
        context.update_tags(context.attributes["Arn"], old, new)


class DashboardHandler(ResourceHandler):
    type_name = "AWS::CloudWatch::Dashboard"
    service = "cloudwatch"
    deletion = ("DeleteDashboards", "DashboardNames")
    gone = ("ResourceNotFound",)
    properties = frozenset({"DashboardBody", "DashboardName", "Tags"})
    name_property = "DashboardName"

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls PutDashboard; fails if the name is taken, which PutDashboard would not."""
        name = properties.get("DashboardName") or context.physical_name(maximum=_NAME_LENGTH)
        entries = context.api.list_dashboards(DashboardNamePrefix=name)["DashboardEntries"]
        if any(each["DashboardName"] == name for each in entries):
            raise ResourceFailedError(f"{name} already exists")
        context.call("PutDashboard", {**properties, "DashboardName": name})
        return Physical(name)

    def update(self, context: ResourceContext, old: Properties, new: Properties) -> None:
        """Puts the dashboard again; tags have their own calls."""
        name = context.physical_id
        body = {"DashboardName": name, "DashboardBody": new["DashboardBody"]}
        context.call("PutDashboard", body)
        # A dashboard belongs to no region.
        context.update_tags(context.arn("cloudwatch", f"dashboard/{name}", region=""), old, new)


class LogGroupHandler(ResourceHandler):
    type_name = "AWS::Logs::LogGroup"
    service = "logs"
    deletion = ("DeleteLogGroup", "logGroupName")
    gone = ("ResourceNotFoundException",)
    properties = frozenset({"KmsKeyId", "LogGroupClass", "LogGroupName", "RetentionInDays", "Tags"})
    name_property = "LogGroupName"
    attributes = frozenset({"Arn"})

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        name = properties.get("LogGroupName") or context.physical_name(maximum=512)
        if "KmsKeyId" in properties:
            _check_log_key(context, name, properties["KmsKeyId"])
        request = {
            "logGroupName": name,
            "tags": tag_map(properties) or None,
            **selected(properties, kmsKeyId="KmsKeyId", logGroupClass="LogGroupClass"),
        }
        context.call("CreateLogGroup", request)
        context.initiated(name)
        self._retain(context, name, properties)
        return self._physical(context, name)

    def update(self, context: ResourceContext, old: Properties, new: Properties) -> None:
        name, key = context.physical_id, new.get("KmsKeyId")
        if changed(old, new, "LogGroupClass"):
            raise ChangeRefusedError("LogGroupClass cannot be changed")
        if changed(old, new, "RetentionInDays"):
            self._retain(context, name, new)
        if changed(old, new, "KmsKeyId"):
            if key is not None:
                _check_log_key(context, name, key)
            # moto has neither AssociateKmsKey nor DisassociateKmsKey.
            groups = logs_backends[context.identity.account_id][context.region].groups
            groups[name].kms_key_id = key
        arn = context.arn("logs", f"log-group:{name}")
        context.update_tags(arn, old, new, tags=tag_map(new))

    def existing(self, context: ResourceContext, properties: Properties) -> Physical | None:
        name = properties["LogGroupName"]
        pages = context.api.describe_log_groups(logGroupNamePrefix=name)["logGroups"]
        found = any(group["logGroupName"] == name for group in pages)
        return self._physical(context, name) if found else None

    def _retain(self, context: ResourceContext, name: str, properties: Properties) -> None:
        if "RetentionInDays" in properties:
            request = {"logGroupName": name, "retentionInDays": properties["RetentionInDays"]}
            context.call("PutRetentionPolicy", request)
        else:
            context.api.delete_retention_policy(logGroupName=name)

    def _physical(self, context: ResourceContext, name: str) -> Physical:
        return Physical(name, {"Arn": context.arn("logs", f"log-group:{name}:*")})


def _check_log_key(context: ResourceContext, group_name: str, key_arn: str) -> None:
    """Checks that a key exists and that its policy lets CloudWatch Logs use it for a log group.

    moto stores the key without looking at its policy. The error has AWS's words.
    """
    group_arn = context.arn("logs", f"log-group:{group_name}")
    kms = context.client("kms")
    try:
        enabled = kms.describe_key(KeyId=key_arn)["KeyMetadata"]["Enabled"]
        policy = kms.get_key_policy(KeyId=key_arn, PolicyName="default")["Policy"]
    except ClientError:
        enabled, policy = False, "{}"
    statements = json.loads(policy).get("Statement", [])
    service = f"logs.{context.region}.amazonaws.com"
    allowed = all(
        any(_allows(each, service, action, group_arn) for each in statements)
        for action in _KEY_ACTIONS
    )
    if not (enabled and allowed):
        raise ResourceFailedError(
            'Resource handler returned message: "The specified KMS key does not exist or is not '
            f"allowed to be used with Arn '{group_arn}' (Service: CloudWatchLogs, Status Code: "
            '400)" (HandlerErrorCode: GeneralServiceException)'
        )


def _allows(statement: Mapping[str, Any], service: str, action: str, group_arn: str) -> bool:
    """Returns whether a statement of a key's policy lets the service use the key for a log group.

    Of its conditions, those on the encryption context are evaluated, and no others.
    """
    principal = statement.get("Principal", {})
    services = principal if isinstance(principal, str) else principal.get("Service", [])
    return (
        statement["Effect"] == "Allow"
        and bool({service, "*"} & set(listed(services)))
        and matches(statement.get("Action", []), action)
        and all(
            matches(patterns, group_arn)
            for operator, keys in statement.get("Condition", {}).items()
            if operator in _POSITIVE
            for key, patterns in keys.items()
            if key.lower() == _KEY_CONTEXT
        )
    )
