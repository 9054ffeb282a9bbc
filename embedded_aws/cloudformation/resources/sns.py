"""Notification topics, their policies and subscriptions."""

from typing import Any

from botocore.exceptions import ClientError
from moto.sns.models import sns_backends

from slipway.embedded_aws.cloudformation.resources.base import (
    Physical,
    Properties,
    ResourceContext,
    ResourceFailedError,
    ResourceHandler,
    changed,
    document_text,
    selected,
    tag_list,
)

_TOPIC_ATTRIBUTES = ("DisplayName", "KmsMasterKeyId")
_GONE = ("NotFound", "NotFoundException")


class TopicHandler(ResourceHandler):
    type_name = "AWS::SNS::Topic"
    service = "sns"
    # The topic's subscriptions go with it.
    deletion = ("DeleteTopic", "TopicArn")
    gone = _GONE
    properties = frozenset({*_TOPIC_ATTRIBUTES, "Tags", "TopicName"})
    name_property = "TopicName"
    attributes = frozenset({"TopicArn", "TopicName"})

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        name = properties.get("TopicName") or context.physical_name(maximum=256)
        try:
            context.api.get_topic_attributes(TopicArn=context.arn("sns", name))
        except ClientError:
            pass
        else:
            # The API would return the existing topic; CloudFormation refuses it.
            raise ResourceFailedError(f"{name} already exists")
        attributes = selected(properties, *_TOPIC_ATTRIBUTES)
        request = {"Name": name, "Attributes": attributes, "Tags": tag_list(properties)}
        arn: str = context.call("CreateTopic", request)["TopicArn"]
        return Physical(arn, {"TopicArn": arn, "TopicName": name})

    def update(self, context: ResourceContext, old: Properties, new: Properties) -> None:
        for name in _TOPIC_ATTRIBUTES:
            if changed(old, new, name):
                _set_attribute(context, context.physical_id, name, new.get(name, ""))
        context.update_tags(context.physical_id, old, new)


class TopicPolicyHandler(ResourceHandler):
    type_name = "AWS::SNS::TopicPolicy"
    service = "sns"
    properties = frozenset({"PolicyDocument", "Topics"})
    attributes = frozenset({"Id"})

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        name = context.physical_name(maximum=256)
        self.update(context, {"Topics": []}, properties)
        return Physical(name, {"Id": name})

    def update(self, context: ResourceContext, old: Properties, new: Properties) -> None:
        """Sets the policy; topics that left the list get the default policy."""
        account_id, region = context.identity.account_id, context.region
        topics = sns_backends[account_id][region].topics
        for arn in old["Topics"]:
            if arn not in new["Topics"] and (topic := topics.get(arn)) is not None:
                policy = topic._create_default_topic_policy(region, account_id, topic.name)
                _set_attribute(context, arn, "Policy", policy)
        for arn in new["Topics"]:
            _set_attribute(context, arn, "Policy", new["PolicyDocument"])

    def delete(self, context: ResourceContext, properties: Properties) -> None:
        self.update(context, properties, {"Topics": []})


class SubscriptionHandler(ResourceHandler):
    """A subscription, which cannot be changed: any other is a new one."""

    type_name = "AWS::SNS::Subscription"
    service = "sns"
    deletion = ("Unsubscribe", "SubscriptionArn")
    gone = _GONE
    properties = frozenset({"Endpoint", "Protocol", "TopicArn"})
    attributes = frozenset({"Arn"})

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        request = {**properties, "ReturnSubscriptionArn": True}
        arn: str = context.call("Subscribe", request)["SubscriptionArn"]
        return Physical(arn, {"Arn": arn})


def _set_attribute(context: ResourceContext, arn: str, name: str, value: Any) -> None:
    context.api.set_topic_attributes(
        TopicArn=arn, AttributeName=name, AttributeValue=document_text(value)
    )
