"""Encryption keys and their aliases."""

from typing import Any

from slipway.embedded_aws.cloudformation.document import scalar_text
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
    ResourceHandler,
    TagStyle,
    changed,
)

_DEFAULT_WINDOW_DAYS = 30


class KeyHandler(ResourceHandler):
    """AWS::KMS::Key."""

    type_name = "AWS::KMS::Key"
    properties = frozenset(
        {"Description", "EnableKeyRotation", "KeyPolicy", "PendingWindowInDays", "Tags"}
    )
    attributes = frozenset({"Arn", "KeyId"})
    tags = TagStyle.LIST

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls CreateKey, then sets the rotation."""
        client = context.client("kms")
        policy = properties.get("KeyPolicy")
        request: dict[str, Any] = {
            **selected(properties, "Description"),
            "Policy": document_text(policy) if policy is not None else None,
            "Tags": _kms_tags(properties),
        }
        key = call(client, "CreateKey", request)["KeyMetadata"]
        context.initiated(key["KeyId"])
        self._set_rotation(context, key["KeyId"], properties)
        return Physical(key["KeyId"], {"Arn": key["Arn"], "KeyId": key["KeyId"]})

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Changes policy, description, rotation and tags."""
        client = context.client("kms")
        if changed(old, new, "KeyPolicy") and "KeyPolicy" in new:
            policy = document_text(new["KeyPolicy"])
            client.put_key_policy(KeyId=physical_id, PolicyName="default", Policy=policy)
        if changed(old, new, "Description"):
            client.update_key_description(KeyId=physical_id, Description=new.get("Description", ""))
        if changed(old, new, "EnableKeyRotation"):
            self._set_rotation(context, physical_id, new)
        update_tags(client, physical_id, old, new, tags=_kms_tags(new))
        return {"Arn": context.arn("kms", f"key/{physical_id}"), "KeyId": physical_id}

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Schedules the deletion: the key stays, unusable, for its waiting period."""
        days = int(properties.get("PendingWindowInDays", _DEFAULT_WINDOW_DAYS))
        with ignoring("NotFoundException", "KMSInvalidStateException"):
            context.client("kms").schedule_key_deletion(KeyId=physical_id, PendingWindowInDays=days)

    def _set_rotation(self, context: ResourceContext, key_id: str, properties: Properties) -> None:
        client = context.client("kms")
        if scalar_text(properties.get("EnableKeyRotation", False)).lower() == "true":
            client.enable_key_rotation(KeyId=key_id)
        elif client.get_key_rotation_status(KeyId=key_id)["KeyRotationEnabled"]:
            client.disable_key_rotation(KeyId=key_id)


class AliasHandler(ResourceHandler):
    """AWS::KMS::Alias."""

    type_name = "AWS::KMS::Alias"
    properties = frozenset({"AliasName", "TargetKeyId"})
    name_property = "AliasName"

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        """Calls CreateAlias."""
        client = context.client("kms")
        name = properties["AliasName"]
        client.create_alias(AliasName=name, TargetKeyId=properties["TargetKeyId"])
        return Physical(name, {})

    def update(
        self, context: ResourceContext, physical_id: str, old: Properties, new: Properties
    ) -> Attributes:
        """Points the alias at another key."""
        context.client("kms").update_alias(AliasName=physical_id, TargetKeyId=new["TargetKeyId"])
        return {}

    def delete(self, context: ResourceContext, physical_id: str, properties: Properties) -> None:
        """Calls DeleteAlias."""
        with ignoring("NotFoundException"):
            context.client("kms").delete_alias(AliasName=physical_id)


def _kms_tags(properties: Properties) -> list[dict[str, str]] | None:
    tags = [{"TagKey": t["Key"], "TagValue": str(t["Value"])} for t in tag_list(properties)]
    return tags or None
