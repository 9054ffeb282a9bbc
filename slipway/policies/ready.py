"""The policies that environments.yaml has names for."""

import fnmatch
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypedDict, Unpack

from pydantic import ValidationError

from slipway.codes.code import Code
from slipway.config.messages import describe
from slipway.config.sections.policies import Policies
from slipway.errors import FieldPath, Kind, Problem, UserError
from slipway.policies.plan import Plan, Policy

_Finding = tuple[Code, str, str, FieldPath]


class _Settings(TypedDict, total=False):
    max_cost_per_hour_usd: float
    required_tags: Sequence[str]
    allowed_instance_types: Sequence[str]
    allowed_regions: Sequence[str]
    image_digests: bool
    network_isolation: bool


def ready(**settings: Unpack[_Settings]) -> Policy:
    """Returns the policy of settings of environments.yaml; raises `UserError` for a wrong one."""
    if unknown := settings.keys() - _Settings.__annotations__:
        raise TypeError(f"no ready policy: {', '.join(sorted(unknown))}")
    try:
        rules = Policies.model_validate(settings)
    except ValidationError as error:
        details = error.errors(include_url=False)
        raise UserError(describe(each, Policies, {}) for each in details) from None
    return lambda plan: found_by(rules, plan)


def found_by(rules: Policies, plan: Plan) -> Iterator[Problem]:
    """Yields what the project's settings refuse, without its own policies."""
    for check in (_cost, _tags, _types, _region, _image, _isolation):
        for code, message, remedy, field in check(rules, plan):
            yield Problem(code, Kind.COMPATIBILITY, message, remedy, field)


def _cost(rules: Policies, plan: Plan) -> Iterator[_Finding]:
    limit, usd = rules.max_cost_per_hour_usd, plan.max_usd_per_hour
    field = ("endpoint", "instances")
    if limit is None:
        return
    if usd is None:
        message = f"no price of {', '.join(plan.unpriced)} in {plan.region} is known, and the "
        message += f"project's limit is {limit:g} USD an hour"
        remedy = "Choose a type with a known price, or lift the limit for this environment."
        yield Code.POLICY_PRICE, message, remedy, field
    elif usd > limit:
        message = f"costs up to {usd:g} USD an hour in `{plan.environment}`, and the project's "
        message += f"limit is {limit:g}"
        remedy = "Take fewer or smaller instances, also as the most of `autoscaling`."
        yield Code.POLICY_COST, message, remedy, field


def _tags(rules: Policies, plan: Plan) -> Iterator[_Finding]:
    for key in rules.required_tags:
        if key not in plan.tags:
            message = "the project requires this tag, and the model has none"
            remedy = "Add it to `tags`, or to the `defaults` of environments.yaml."
            yield Code.POLICY_TAGS, message, remedy, ("tags", key)


def _types(rules: Policies, plan: Plan) -> Iterator[_Finding]:
    patterns = rules.allowed_instance_types or ()
    for field, name in _instances(plan.config["endpoint"]) if patterns else ():
        if not _is_any(name, patterns):
            message = f"{name} is not among the project's instance types in `{plan.environment}`"
            yield Code.POLICY_INSTANCE_TYPE, message, f"Allowed: {', '.join(patterns)}.", field


def _region(rules: Policies, plan: Plan) -> Iterator[_Finding]:
    patterns = rules.allowed_regions
    if patterns and not _is_any(plan.region, patterns):
        message, remedy = f"{plan.region} is not among the project's regions", ", ".join(patterns)
        yield Code.POLICY_REGION, message, f"Allowed: {remedy}.", ("environment", "region")


def _image(rules: Policies, plan: Plan) -> Iterator[_Finding]:
    uri = plan.config["serving"].get("image_uri", "") if rules.image_digests else ""
    if uri and "@sha256:" not in uri:
        message = f"{uri} names the image by a tag, and the project requires a digest"
        remedy = "Write `REPOSITORY@sha256:DIGEST`; `aws ecr describe-images` prints the digest."
        yield Code.POLICY_IMAGE_TAG, message, remedy, ("serving", "image_uri")


def _isolation(rules: Policies, plan: Plan) -> Iterator[_Finding]:
    if rules.network_isolation and not plan.config["endpoint"]["network_isolation"]:
        message = "the container can open connections, and the project requires isolation"
        remedy = "Remove `network_isolation: false`."
        yield Code.POLICY_NETWORK, message, remedy, ("endpoint", "network_isolation")


def _instances(endpoint: Mapping[str, Any]) -> Iterator[tuple[FieldPath, str]]:
    sections: dict[FieldPath, Any] = {(): endpoint, ("shadow",): endpoint["shadow"]}
    sections |= {("variants", index): each for index, each in enumerate(endpoint["variants"])}
    for path, section in sections.items():
        for index, name in enumerate((section and section["instances"]) or ()):
            yield ("endpoint", *path, "instances", index), name


def _is_any(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
