"""Lifecycle rules, whose template form differs from the API's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embedded_aws.cloudformation.resources.api_calls import allowed_members

_RULE = (
    "AbortIncompleteMultipartUpload",
    "ExpirationDate",
    "ExpirationInDays",
    "ExpiredObjectDeleteMarker",
    "Id",
    "NoncurrentVersionExpiration",
    "NoncurrentVersionExpirationInDays",
    "NoncurrentVersionTransitions",
    "ObjectSizeGreaterThan",
    "ObjectSizeLessThan",
    "Prefix",
    "Status",
    "TagFilters",
    "Transitions",
)


def lifecycle_rules(configuration: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Translates a bucket's LifecycleConfiguration.

    Args:
        configuration: the property's value.

    Returns:
        The rules in the form of PutBucketLifecycleConfiguration.

    Raises:
        ResourceFailedError: a rule has a member that is not emulated.
    """
    allowed_members(configuration, ("Rules",), "LifecycleConfiguration")
    return [_rule(rule) for rule in configuration["Rules"]]


def _rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    allowed_members(rule, _RULE, "LifecycleConfiguration.Rules")
    translated: dict[str, Any] = {"Status": rule["Status"], "Filter": _filter(rule)}
    if "Id" in rule:
        translated["ID"] = rule["Id"]
    expiration = {
        member: rule[name]
        for member, name in (
            ("Date", "ExpirationDate"),
            ("Days", "ExpirationInDays"),
            ("ExpiredObjectDeleteMarker", "ExpiredObjectDeleteMarker"),
        )
        if name in rule
    }
    if expiration:
        translated["Expiration"] = expiration
    if "NoncurrentVersionExpiration" in rule:
        translated["NoncurrentVersionExpiration"] = rule["NoncurrentVersionExpiration"]
    elif "NoncurrentVersionExpirationInDays" in rule:
        days = rule["NoncurrentVersionExpirationInDays"]
        translated["NoncurrentVersionExpiration"] = {"NoncurrentDays": days}
    if "AbortIncompleteMultipartUpload" in rule:
        translated["AbortIncompleteMultipartUpload"] = rule["AbortIncompleteMultipartUpload"]
    if "Transitions" in rule:
        translated["Transitions"] = [
            _renamed(item, {"TransitionInDays": "Days", "TransitionDate": "Date"})
            for item in rule["Transitions"]
        ]
    if "NoncurrentVersionTransitions" in rule:
        translated["NoncurrentVersionTransitions"] = [
            _renamed(item, {"TransitionInDays": "NoncurrentDays"})
            for item in rule["NoncurrentVersionTransitions"]
        ]
    return translated


def _filter(rule: Mapping[str, Any]) -> dict[str, Any]:
    conditions = {
        name: rule[name]
        for name in ("Prefix", "ObjectSizeGreaterThan", "ObjectSizeLessThan")
        if name in rule
    }
    tags = rule.get("TagFilters", [])
    if len(conditions) + len(tags) > 1:
        return {"And": {**conditions, **({"Tags": tags} if tags else {})}}
    if tags:
        return {"Tag": tags[0]}
    return conditions or {"Prefix": ""}


def _renamed(item: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in item.items()}
