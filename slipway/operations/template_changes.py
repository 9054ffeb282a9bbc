"""What CloudFormation does to a stack whose template is replaced by another, read from both.

AWS's provider schemas say which property is never changed in place. What refers to a resource that
is made anew changes with it. A type that the table lacks counts as one that changes in place.
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from slipway.facts.resource_types import provider_schemas
from slipway.planning.consequences import Consequence, Effect
from slipway.planning.review import Reach

Resource = Mapping[str, Any]
Resources = Mapping[str, Resource]

_ENDPOINT: Final = "AWS::SageMaker::Endpoint"
_COPIES: Final = "AWS::SageMaker::InferenceComponent"
_ROLLED_WITH: Final = ("AWS::SageMaker::EndpointConfig", "AWS::SageMaker::Model")
# Without these, requests fail for a while, or what they hold is lost.
_KEPT: Final = (
    *("AWS::ECR::Repository", "AWS::KMS::Key", "AWS::Logs::LogGroup", "AWS::S3::Bucket"),
    *("AWS::SNS::Topic", _ENDPOINT, _COPIES),
)
_ADDED, _REMOVED, _ANEW = "is added", "is removed", "is made anew"
_LONGEST_EDIT: Final = 200
# The CDK ends a logical id with a digest, and names a file of its assets by one.
_DIGEST: Final = re.compile(r"[0-9A-F]{8}$|\b[0-9a-f]{64}\b")


def template_effects(before: Resources, after: Resources) -> list[Effect]:
    """Returns what an update does, the strongest first; what is in place by type."""
    changed, anew = _differences(before, after)
    weak: dict[str, set[str]] = {}
    effects: list[Effect] = []
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        does = _ANEW if name in anew else _ADDED if old is None else "" if new else _REMOVED
        strong = None
        if old is not None:
            others = [after[each] for each in (after.keys() - before.keys()) | ({name} & anew)]
            strong = _strong(
                f"{old['Type']} {name}", old, new, does, changed.get(name, set()), others
            )
        kind = (new or old or {})["Type"]
        if strong is not None:
            effects.append(strong)
        elif kind not in _ROLLED_WITH or not does:
            weak.setdefault(kind, set()).update([does] if does else changed[name])
    weak.get(_ENDPOINT, set()).discard("EndpointConfigName")  # the configuration has a line
    effects += [
        _effect(Consequence.IN_PLACE, f"{kind} {_verb(told)}", "what serves stays")
        for kind, told in weak.items()
        if told
    ]
    strength = list(Consequence).index
    return sorted(effects, key=lambda each: strength(each.consequence), reverse=True)


def _differences(before: Resources, after: Resources) -> tuple[dict[str, set[str]], set[str]]:
    """Returns the properties that change, by logical id, and the resources that are replaced."""
    changed, anew = {}, set[str]()
    for name in before.keys() & after.keys():
        olds, news = (each[name].get("Properties", {}) for each in (before, after))
        changed[name] = {each for each in {*olds, *news} if olds.get(each) != news.get(each)}
    while True:
        for name, properties in changed.items():
            for each, value in after[name].get("Properties", {}).items():
                if anew & set(_references(value)):
                    properties.add(each)
        found = {name for name in changed if changed[name] & {*_create_only(after[name])}}
        if found == anew:
            return changed, anew
        anew = found


def _create_only(resource: Resource) -> list[str]:
    return provider_schemas().get(resource["Type"], {}).get("create_only", [])


def _references(value: Any) -> Iterator[str]:
    """Yields the logical ids in a value; the CDK writes no `Fn::Sub`."""
    for key, inner in value.items() if isinstance(value, Mapping) else ():
        if key in ("Ref", "Fn::GetAtt"):
            yield inner if key == "Ref" else inner[0]
        yield from _references(inner)
    for inner in value if isinstance(value, list) else ():
        yield from _references(inner)


def _strong(
    what: str,
    old: Resource,
    new: Resource | None,
    does: str,
    changed: set[str],
    others: list[Resource],
) -> Effect | None:
    """Returns what is more than a change in place, if it is."""
    kind = old["Type"]
    if new is not None and new["Type"] != kind:
        return _effect(Consequence.REFUSED, what, "a resource keeps its type", kind, new["Type"])
    if does and any(_has_same_name(old, each) for each in others):
        reason = "the name is taken until the old one is deleted"
        return _effect(Consequence.REFUSED, f"{what} {_ANEW}", reason)
    if does and kind in _KEPT:
        reason = "requests fail meanwhile" if "SageMaker" in kind else "what it holds stays behind"
        return _effect(Consequence.GAP, f"{what} {does}", reason)
    if does and kind in _ROLLED_WITH:
        edit = _edit(old, new) if new is not None else (None, None)
        reason = "the endpoint gets another configuration"
        return _effect(Consequence.NEW_FLEET, f"{kind} {_ANEW}", reason, *edit)
    if kind == _COPIES and new is not None and "Specification" in changed:
        return _effect(
            Consequence.NEW_FLEET, f"{kind} changes", "new copies start", *_edit(old, new)
        )
    return None


def _has_same_name(old: Resource, new: Resource) -> bool:
    """Returns whether both cannot exist at once."""
    olds, news = (each.get("Properties", {}) for each in (old, new))
    names = [each for each in _create_only(old) if isinstance(olds.get(each), str)]
    is_named = any(each.endswith("Name") for each in names)
    return old["Type"] == new["Type"] and is_named and all(olds[n] == news.get(n) for n in names)


def _edit(old: Resource, new: Resource) -> tuple[str | None, str | None]:
    olds, news = (
        json.dumps(each.get("Properties", {}), indent=1, sort_keys=True).splitlines()
        for each in (old, new)
    )
    lines = [line for line in difflib.ndiff(olds, news) if line[0] in "+-"]
    before, after = (
        " ".join(line[2:].strip(" ,") for line in lines if line[0] == sign)[:_LONGEST_EDIT]
        for sign in "-+"
    )
    return before or None, after or None


def _verb(told: set[str]) -> str:
    verbs = told & {_ADDED, _REMOVED, _ANEW}
    properties = ", ".join(sorted(told - verbs))
    if {_ADDED, _REMOVED} <= verbs:
        verbs = {_ANEW}
    return " and ".join([*sorted(verbs), *([f"changes {properties}"] if properties else [])])


def _effect(
    consequence: Consequence,
    what: str,
    reason: str,
    before: str | None = None,
    after: str | None = None,
) -> Effect:
    return Effect(what, before, after, consequence, reason, "AWS's provider schemas")


def template_reach(before: Resources, after: Resources) -> tuple[Reach, ...]:
    """Returns the rights that an update gives and takes, by the resource with the policy.

    A right with a further condition is no wider one. A `Deny` that goes widens.
    """
    olds, news = (dict.fromkeys(_rights(each)) for each in (before, after))
    found: dict[tuple[bool, str], list[str]] = {}
    for side, others, is_after in ((news, olds, True), (olds, news, False)):
        for right in side:
            *what, limits = right
            if any(each[:-1] == right[:-1] and each[-1] <= limits for each in others):
                continue
            effect, holder, action, thing = what
            conditions = "".join(f", if {each}" for each in sorted(limits))
            is_denied = effect == "Deny"
            told = f"{thing}{conditions}, {'denied by' if is_denied else 'for'} {holder}"
            found.setdefault((is_after is not is_denied, told), []).append(action)
    return tuple(
        Reach(is_wider, f"{', '.join(actions)} on {told}")
        for (is_wider, told), actions in sorted(found.items(), key=lambda each: not each[0][0])
    )


def _rights(resources: Resources) -> Iterator[tuple[str, str, str, str, frozenset[str]]]:
    for name, resource in resources.items():
        properties = resource.get("Properties", {})
        roles = properties.get("Roles") if resource["Type"] == "AWS::IAM::Policy" else None
        holder = _DIGEST.sub("", next(_references(roles), name))
        for each in _statements(properties):
            limits = frozenset(
                f"{key} {operator} {_text(value)}"
                for operator, pairs in each.get("Condition", {}).items()
                for key, value in pairs.items()
            )
            who = each.get("Principal", {})
            trusted = [_text(each) for each in (who.values() if isinstance(who, dict) else [who])]
            for action in _listed(each.get("Action", "*")):
                for thing in _listed(each.get("Resource", trusted)):
                    told = " for ".join(dict.fromkeys([_text(thing), *trusted]))
                    yield each["Effect"], holder, action, _DIGEST.sub("*", told), limits


def _statements(value: Any) -> Iterator[Resource]:
    if isinstance(value, Mapping):
        yield from _listed(value.get("Statement", []))
        value = list(value.values())
    for inner in value if isinstance(value, list) else ():
        yield from _statements(inner)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _text(value: Any) -> str:
    """Returns a value as CloudFormation's own `${}` notation has it."""
    match value:
        case str():
            return value
        case {"Ref": str(name)}:
            return f"${{{name}}}"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"${{{name}.{attribute}}}"
        case {"Fn::Join": [str(between), list(parts)]}:
            return between.join(map(_text, parts))
    return json.dumps(value, sort_keys=True)
