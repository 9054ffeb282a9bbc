"""Encryption keys and their aliases."""

from typing import Any

from slipway.embedded_aws.cloudformation.document import scalar_text
from slipway.embedded_aws.cloudformation.resources.base import (
    Physical,
    Properties,
    ResourceContext,
    ResourceHandler,
    changed,
    document_text,
    ignoring,
    selected,
    tag_list,
)

_DEFAULT_WINDOW_DAYS = 30


class KeyHandler(ResourceHandler):
    type_name = "AWS::KMS::Key"
    service = "kms"
    properties = frozenset(
        {"Description", "EnableKeyRotation", "KeyPolicy", "PendingWindowInDays", "Tags"}
    )
    attributes = frozenset({"Arn", "KeyId"})

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        policy = properties.get("KeyPolicy")
        request: dict[str, Any] = {
            **selected(properties, "Description"),
            "Policy": document_text(policy) if policy is not None else None,
            "Tags": _kms_tags(properties),
        }
        key = context.call("CreateKey", request)["KeyMetadata"]
        context.initiated(key["KeyId"])
        self._set_rotation(context, key["KeyId"], properties)
        return Physical(key["KeyId"], {"Arn": key["Arn"], "KeyId": key["KeyId"]})

    def update(self, context: ResourceContext, old: Properties, new: Properties) -> None:
        key_id, client = context.physical_id, context.api
        if changed(old, new, "KeyPolicy") and "KeyPolicy" in new:
            policy = document_text(new["KeyPolicy"])
            client.put_key_policy(KeyId=key_id, PolicyName="default", Policy=policy)
        if changed(old, new, "Description"):
            client.update_key_description(KeyId=key_id, Description=new.get("Description", ""))
        if changed(old, new, "EnableKeyRotation"):
            self._set_rotation(context, key_id, new)
        context.update_tags(key_id, old, new, tags=_kms_tags(new))

    def delete(self, context: ResourceContext, properties: Properties) -> None:
        """Schedules the deletion: the key stays, unusable, for its waiting period."""
        days = properties.get("PendingWindowInDays", _DEFAULT_WINDOW_DAYS)
        request = {"KeyId": context.physical_id, "PendingWindowInDays": days}
        with ignoring("NotFoundException", "KMSInvalidStateException"):
            context.call("ScheduleKeyDeletion", request)

    def _set_rotation(self, context: ResourceContext, key_id: str, properties: Properties) -> None:
        if scalar_text(properties.get("EnableKeyRotation", False)).lower() == "true":
            context.api.enable_key_rotation(KeyId=key_id)
        elif context.api.get_key_rotation_status(KeyId=key_id)["KeyRotationEnabled"]:
            context.api.disable_key_rotation(KeyId=key_id)


class AliasHandler(ResourceHandler):
    type_name = "AWS::KMS::Alias"
    service = "kms"
    deletion = ("DeleteAlias", "AliasName")
    gone = ("NotFoundException",)
    properties = frozenset({"AliasName", "TargetKeyId"})
    name_property = "AliasName"

    def create(self, context: ResourceContext, properties: Properties) -> Physical:
        context.call("CreateAlias", properties)
        return Physical(properties["AliasName"])

    def update(self, context: ResourceContext, old: Properties, new: Properties) -> None:
        context.call("UpdateAlias", new)


def _kms_tags(properties: Properties) -> list[dict[str, str]] | None:
    tags = [{"TagKey": t["Key"], "TagValue": str(t["Value"])} for t in tag_list(properties)]
    return tags or None
