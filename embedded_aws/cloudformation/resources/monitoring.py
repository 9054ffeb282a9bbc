"""Alarms, dashboards and log groups."""

from typing import Any

from slipway.embedded_aws.cloudformation.resources.api_calls import (
    call,
    ignoring,
    tag_map,
    update_tags,
)
from slipway.embedded_aws.cloudformation.resources.base import (
    Attributes,
    ChangeRefusedError,
    Physical,
    Properties,
    ResourceContext,
    ResourceFailedError,
    ResourceHandler,
    TagStyle,
    changed,
)
from slipway.embedded_aws.cloudformation.resources.log_keys import check_log_key, set_log_key

_NAME_LENGTH = 255


class AlarmHandler(ResourceHandler):
    """AWS::CloudWatch::Alarm, with metric math."""

    type_name = "AWS::CloudWatch::Alarm"
    properties = frozenset(
        {
            "ActionsEnabled",
            "AlarmActions",
            "AlarmDescription",
            "AlarmName",
            "ComparisonOperator",
            "DatapointsToAlarm",
            "Dimensions",
            "EvaluateLowSampleCountPercentile",
            "EvaluationPeriods",
            "ExtendedStatistic",
            "InsufficientDataActions",
            "MetricName",
            "Metrics",
            "Namespace",
            "OKActions",
            "Period",
            "Statistic",
            "Tags",
            "Threshold",
            "ThresholdMetricId",
            "TreatMissingData",
            "Unit",
        }
    )
    name_property = "AlarmName"
    attributes = frozenset({"Arn"})
    tags = TagStyle.LIST

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls PutMetricAlarm."""
        name = properties.get("AlarmName") or context.physical_name(maximum=_NAME_LENGTH)
        client = context.client("cloudwatch")
        if client.describe_alarms(AlarmNames=[name])["MetricAlarms"]:
            raise ResourceFailedError(f"{name} already exists")
        call(client, "PutMetricAlarm", {**properties, "AlarmName": name})
        return Physical(name, self._attributes(context, name))

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Puts the alarm again; tags have their own calls."""
        client = context.client("cloudwatch")
        attributes = self._attributes(context, physical_id)
        without_tags = {name: value for name, value in new.items() if name != "Tags"}
        call(client, "PutMetricAlarm", {**without_tags, "AlarmName": physical_id})
        update_tags(client, attributes["Arn"], old, new)
        return attributes

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Calls DeleteAlarms."""
        with ignoring("ResourceNotFound"):
            context.client("cloudwatch").delete_alarms(AlarmNames=[physical_id])

    def _attributes(self, context: ResourceContext, name: str) -> Attributes:
        return {"Arn": context.arn("cloudwatch", f"alarm:{name}")}


class DashboardHandler(ResourceHandler):
    """AWS::CloudWatch::Dashboard."""

    type_name = "AWS::CloudWatch::Dashboard"
    properties = frozenset({"DashboardBody", "DashboardName", "Tags"})
    name_property = "DashboardName"
    tags = TagStyle.LIST

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls PutDashboard; fails if the name is taken, which PutDashboard would not."""
        name = properties.get("DashboardName") or context.physical_name(maximum=_NAME_LENGTH)
        client = context.client("cloudwatch")
        listed = client.list_dashboards(DashboardNamePrefix=name)["DashboardEntries"]
        if any(each["DashboardName"] == name for each in listed):
            raise ResourceFailedError(f"{name} already exists")
        call(client, "PutDashboard", {**properties, "DashboardName": name})
        return Physical(name, {})

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Puts the dashboard again; tags have their own calls."""
        client = context.client("cloudwatch")
        body = {"DashboardName": physical_id, "DashboardBody": new["DashboardBody"]}
        call(client, "PutDashboard", body)
        # A dashboard belongs to no region.
        arn = context.arn("cloudwatch", f"dashboard/{physical_id}", region="")
        update_tags(client, arn, old, new)
        return {}

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Calls DeleteDashboards."""
        with ignoring("ResourceNotFound"):
            context.client("cloudwatch").delete_dashboards(DashboardNames=[physical_id])


class LogGroupHandler(ResourceHandler):
    """AWS::Logs::LogGroup."""

    type_name = "AWS::Logs::LogGroup"
    properties = frozenset({"KmsKeyId", "LogGroupClass", "LogGroupName", "RetentionInDays", "Tags"})
    name_property = "LogGroupName"
    attributes = frozenset({"Arn"})
    tags = TagStyle.LIST

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls CreateLogGroup, which fails if the name is taken."""
        client = context.client("logs")
        name = properties.get("LogGroupName") or context.physical_name(maximum=512)
        if "KmsKeyId" in properties:
            check_log_key(context, name, properties["KmsKeyId"])
        request: dict[str, Any] = {
            "logGroupName": name,
            "kmsKeyId": properties.get("KmsKeyId"),
            "logGroupClass": properties.get("LogGroupClass"),
            "tags": tag_map(properties) or None,
        }
        call(client, "CreateLogGroup", request)
        context.initiated(name)
        self._retain(context, name, properties)
        return Physical(name, self._attributes(context, name))

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Changes retention, key and tags."""
        client = context.client("logs")
        if changed(old, new, "LogGroupClass"):
            raise ChangeRefusedError("LogGroupClass cannot be changed")
        if changed(old, new, "RetentionInDays"):
            self._retain(context, physical_id, new)
        if changed(old, new, "KmsKeyId"):
            set_log_key(context, physical_id, new.get("KmsKeyId"))
        arn = context.arn("logs", f"log-group:{physical_id}")
        update_tags(client, arn, old, new, tags=tag_map(new))
        return self._attributes(context, physical_id)

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Calls DeleteLogGroup."""
        with ignoring("ResourceNotFoundException"):
            context.client("logs").delete_log_group(logGroupName=physical_id)

    def existing(self, context: ResourceContext, properties: Properties) -> Physical | None:
        """Returns the log group of that name."""
        name = properties["LogGroupName"]
        pages = context.client("logs").describe_log_groups(logGroupNamePrefix=name)["logGroups"]
        if not any(group["logGroupName"] == name for group in pages):
            return None
        return Physical(name, self._attributes(context, name))

    def _retain(self, context: ResourceContext, name: str, properties: Properties) -> None:
        client = context.client("logs")
        if "RetentionInDays" in properties:
            request = {"logGroupName": name, "retentionInDays": properties["RetentionInDays"]}
            call(client, "PutRetentionPolicy", request)
        else:
            client.delete_retention_policy(logGroupName=name)

    def _attributes(self, context: ResourceContext, name: str) -> Attributes:
        return {"Arn": context.arn("logs", f"log-group:{name}:*")}
