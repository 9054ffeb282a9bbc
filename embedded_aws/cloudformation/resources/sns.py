"""Notification topics, their policies and subscriptions."""

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from slipway.embedded_aws.cloudformation.resources.api_calls import (
    call,
    document_text,
    ignoring,
    selected,
    tag_list,
    update_tags,
)
from slipway.embedded_aws.cloudformation.resources.base import (
    Attributes,
    Physical,
    Properties,
    ResourceContext,
    ResourceFailedError,
    ResourceHandler,
    TagStyle,
    changed,
)

_TOPIC_ATTRIBUTES = ("DisplayName", "KmsMasterKeyId")


class TopicHandler(ResourceHandler):
    """AWS::SNS::Topic."""

    type_name = "AWS::SNS::Topic"
    properties = frozenset({*_TOPIC_ATTRIBUTES, "Tags", "TopicName"})
    name_property = "TopicName"
    attributes = frozenset({"TopicArn", "TopicName"})
    tags = TagStyle.LIST

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls CreateTopic; fails if the name is taken."""
        client = context.client("sns")
        name = properties.get("TopicName") or context.physical_name(maximum=256)
        try:
            client.get_topic_attributes(TopicArn=context.arn("sns", name))
        except ClientError:
            pass
        else:
            # The API would return the existing topic; CloudFormation refuses it.
            raise ResourceFailedError(f"{name} already exists")
        attributes = selected(properties, *_TOPIC_ATTRIBUTES)
        request = {"Name": name, "Attributes": attributes, "Tags": tag_list(properties)}
        arn: str = call(client, "CreateTopic", request)["TopicArn"]
        return Physical(arn, {"TopicArn": arn, "TopicName": name})

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Changes attributes and tags."""
        client = context.client("sns")
        for key in _TOPIC_ATTRIBUTES:
            if changed(old, new, key):
                client.set_topic_attributes(
                    TopicArn=physical_id,
                    AttributeName=key,
                    AttributeValue=new.get(key, ""),
                )
        update_tags(client, physical_id, old, new)
        return {"TopicArn": physical_id, "TopicName": physical_id.rpartition(":")[2]}

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Calls DeleteTopic, which also deletes its subscriptions."""
        with ignoring("NotFound", "NotFoundException"):
            context.client("sns").delete_topic(TopicArn=physical_id)


class TopicPolicyHandler(ResourceHandler):
    """AWS::SNS::TopicPolicy."""

    type_name = "AWS::SNS::TopicPolicy"
    properties = frozenset({"PolicyDocument", "Topics"})
    attributes = frozenset({"Id"})

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Sets the policy of every topic."""
        self._set(context, properties["Topics"], properties["PolicyDocument"])
        name = context.physical_name(maximum=256)
        return Physical(name, {"Id": name})

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Sets the policy again; topics that left the list get the default policy."""
        self._reset(context, [arn for arn in old["Topics"] if arn not in new["Topics"]])
        self._set(context, new["Topics"], new["PolicyDocument"])
        return {"Id": physical_id}

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Gives every topic the default policy."""
        self._reset(context, properties["Topics"])

    def _set(self, context: ResourceContext, topics: list[str], policy: Any) -> None:
        for arn in topics:
            context.client("sns").set_topic_attributes(
                TopicArn=arn, AttributeName="Policy", AttributeValue=document_text(policy)
            )

    def _reset(self, context: ResourceContext, topics: list[str]) -> None:
        for arn in topics:
            with ignoring("NotFound", "NotFoundException"):
                self._set(context, [arn], _default_policy(context, arn))


class SubscriptionHandler(ResourceHandler):
    """AWS::SNS::Subscription."""

    type_name = "AWS::SNS::Subscription"
    properties = frozenset({"Endpoint", "Protocol", "TopicArn"})
    attributes = frozenset({"Arn"})

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls Subscribe; any other subscription is a new one."""
        request = {**properties, "ReturnSubscriptionArn": True}
        arn: str = call(context.client("sns"), "Subscribe", request)["SubscriptionArn"]
        return Physical(arn, {"Arn": arn})

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Calls Unsubscribe."""
        with ignoring("NotFound", "NotFoundException"):
            context.client("sns").unsubscribe(SubscriptionArn=physical_id)


def _default_policy(context: ResourceContext, arn: str) -> Mapping[str, Any]:
    """Returns the policy that SNS gives a new topic: its owner may do everything."""
    return {
        "Version": "2008-10-17",
        "Id": "__default_policy_ID",
        "Statement": [
            {
                "Effect": "Allow",
                "Sid": "__default_statement_ID",
                "Principal": {"AWS": "*"},
                "Action": [
                    "SNS:GetTopicAttributes",
                    "SNS:SetTopicAttributes",
                    "SNS:AddPermission",
                    "SNS:RemovePermission",
                    "SNS:DeleteTopic",
                    "SNS:Subscribe",
                    "SNS:ListSubscriptionsByTopic",
                    "SNS:Publish",
                ],
                "Resource": arn,
                "Condition": {"StringEquals": {"AWS:SourceOwner": context.identity.account_id}},
            }
        ],
    }
