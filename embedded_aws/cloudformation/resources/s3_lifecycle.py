"""Lifecycle rules, whose template form differs from the API's."""

from collections.abc import Mapping
from typing import Any

from embedded_aws.cloudformation.resources.api_calls import allowed_members, selected

# Members that the API has in a structure of their own: the structure, and their name in it.
_NESTED = {
    "ExpirationDate": ("Expiration", "Date"),
    "ExpirationInDays": ("Expiration", "Days"),
    "ExpiredObjectDeleteMarker": ("Expiration", "ExpiredObjectDeleteMarker"),
    "NoncurrentVersionExpirationInDays": ("NoncurrentVersionExpiration", "NoncurrentDays"),
}
# Lists of transitions: a transition's members, by their name in the template.
_TRANSITIONS = {
    "NoncurrentVersionTransitions": {"TransitionInDays": "NoncurrentDays"},
    "Transitions": {"TransitionInDays": "Days", "TransitionDate": "Date"},
}
_SAME = ("AbortIncompleteMultipartUpload", "NoncurrentVersionExpiration", "Status")
_FILTERS = ("Prefix", "ObjectSizeGreaterThan", "ObjectSizeLessThan")
_RULE = (*_NESTED, *_TRANSITIONS, *_SAME, *_FILTERS, "Id", "TagFilters")


def lifecycle_rules(configuration: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Translates a bucket's LifecycleConfiguration.

    Returns:
        The rules in the form of PutBucketLifecycleConfiguration.

    Raises:
        ResourceFailedError: a rule has a member that is not emulated.
    """
    allowed_members(configuration, ("Rules",), "LifecycleConfiguration")
    return [_rule(rule) for rule in configuration["Rules"]]


def _rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    allowed_members(rule, _RULE, "LifecycleConfiguration.Rules")
    translated: dict[str, Any] = {"Filter": _filter(rule), **selected(rule, ID="Id")}
    for name, (structure, member) in _NESTED.items():
        if name in rule:
            translated.setdefault(structure, {})[member] = rule[name]
    for name, renamed in _TRANSITIONS.items():
        if name in rule:
            translated[name] = [
                {renamed.get(member, member): value for member, value in transition.items()}
                for transition in rule[name]
            ]
    return translated | selected(rule, *_SAME)


def _filter(rule: Mapping[str, Any]) -> dict[str, Any]:
    conditions = selected(rule, *_FILTERS)
    tags = rule.get("TagFilters", [])
    if len(conditions) + len(tags) > 1:
        return {"And": {**conditions, **({"Tags": tags} if tags else {})}}
    if tags:
        return {"Tag": tags[0]}
    return conditions or {"Prefix": ""}
