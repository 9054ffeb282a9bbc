"""What an edit does to a deployed endpoint, told before the deploy.

`consequences` compares two plans. `consequences_of` judges differences that somebody else found,
such as those between a live endpoint and its files. Both look settings up in one table.
"""

import functools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from slipway.facts.tables import read_table
from slipway.planning.plan import DeploymentPlan, ServedModel, VariantPlan
from slipway.planning.rollout import ROLLING

Setting = tuple[str, str | None, str | None]
"""Name of a setting, and its two values; None where one side has no such setting."""


class Consequence(StrEnum):
    """What a deploy does to the endpoint, the weakest first.

    No template of Slipway replaces an endpoint, so no edit leads to `GAP`: a test says so.
    """

    IN_PLACE = "in place"
    NEW_FLEET = "new fleet"
    GAP = "replaced with a gap"
    REFUSED = "refused by AWS"
    DESTROY = "needs destroy"


@dataclass(frozen=True)
class Effect:
    setting: str
    before: str | None
    after: str | None
    consequence: Consequence
    reason: str
    source: str


@dataclass(frozen=True)
class Consequences:
    """What a deploy would do; the strongest effect is the first, and gives the verdict."""

    effects: tuple[Effect, ...]
    verdict: Consequence | None
    fleet: str | None

    @property
    def summary(self) -> str:
        """Returns what the verdict means: the new fleet, or the reason of the strongest effect."""
        return self.fleet or next((each.reason for each in self.effects), "")

    def as_rows(self) -> Iterator[tuple[str, str]]:
        """Yields label and text: the verdict, then each difference."""
        yield "deploy", f"{self.verdict}: {self.summary}" if self.verdict else "no change"
        for each in self.effects:
            change = f"{each.before or 'not set'} -> {each.after or 'not set'}"
            yield each.consequence, f"{each.setting}: {change} ({each.reason})"


_FLEET: Final = Consequence.NEW_FLEET
_COPIES: Final = "endpoint.scale_to_zero"
# Fields of `endpoint` in whose place the plan's own values are compared.
_DERIVED: Final = {
    *("instances", "model_overrides", "scale_to_zero", "shadow", "variants", "vpc"),
    *VariantPlan.__annotations__,
}


@functools.cache
def _rows() -> Mapping[str, tuple[Consequence, str, str]]:
    return {
        name: (Consequence(row["consequence"]), row["reason"], row["source"])
        for row in read_table("consequences.json")["rows"]
        for name in row["settings"]
    }


def consequences(before: DeploymentPlan, after: DeploymentPlan) -> Consequences:
    # In a variant that has its own model on one side, both sides are compared.
    owns = {
        each.name
        for plan in (before, after)
        for each in (*plan.every_variant, *plan.overrides)
        if plan.served_by(each) is not plan
    }
    olds, news = dict(_settings(before, owns)), dict(_settings(after, owns))
    _join_sections(olds, news)
    _join_sections(news, olds)
    names = [{each.name for each in plan.every_variant} for plan in (before, after)]
    both = {each.name for each in before.overrides} & {each.name for each in after.overrides}
    both |= names[0] & names[1]
    found: list[Setting] = []
    for name in dict.fromkeys((*olds, *news)):
        setting, of, variant = (name, "", "") if name.startswith("tag ") else name.partition(" of ")
        # `endpoint.variants`, or `endpoint.model_overrides`, tells of what one side lacks.
        if not of or variant in both:
            shown = name if len(names[1]) > 1 or variant in owns else setting
            found.append((shown, as_text(olds.get(name)), as_text(news.get(name))))
    return consequences_of(found, after)


def _join_sections(olds: dict[str, Any], news: dict[str, Any]) -> None:
    """Makes one value of each section that only one side has."""
    for section in [name for name, value in olds.items() if value is None]:
        names = [name for name in news if name.startswith(f"{section}.")]
        if names and section not in news:
            values = {name: news.pop(name) for name in names}
            news[section] = [
                f"{name.removeprefix(f'{section}.')} {as_text(value)}"
                for name, value in values.items()
                if as_text(value) is not None
            ]


def consequences_of(settings: Iterable[Setting], plan: DeploymentPlan) -> Consequences:
    """Judges the differences between what is deployed and a plan.

    Args:
        settings: by the names of config fields, `image`, `artifact` or `variable NAME`. Where there
            are several variants, a name ends in ` of VARIANT`. Equal values are left out.
        plan: the plan to deploy.
    """
    changed: dict[str, Setting] = {}
    for name, old, new in settings:
        # A section is there if its required field is.
        is_section = name.startswith("autoscaling.min_instance_count") and None in (old, new)
        key = name.replace(".min_instance_count", "") if is_section else name
        if old != new:
            changed[key] = (key, old, new)
    sections = tuple(f"{name.partition(' ')[0]}." for name in changed)
    # A section that comes or goes is one difference.
    effects = [
        _effect(each, plan) for name, each in changed.items() if not name.startswith(sections)
    ]
    strength = list(Consequence).index
    effects.sort(key=lambda each: strength(each.consequence), reverse=True)
    verdict = effects[0].consequence if effects else None
    return Consequences(
        tuple(effects), verdict, fleet_of(plan, changed) if verdict is _FLEET else None
    )


def _effect(setting: Setting, plan: DeploymentPlan) -> Effect:
    name = setting[0]
    # `tag KEY`, `variable NAME`, or a field with its variant at the end.
    name = (name if name.startswith("tag ") else name.partition(" of ")[0]).replace(" ", ".")
    rows = _rows()
    # A key that ends in a dot is for what is in a section, and not for the section.
    keys = [key for key in rows if name == key or name.startswith(f"{key.rstrip('.')}.")]
    row = rows[max(keys, key=len)]
    if plan.component is not None and name.partition(".")[0] == "rollout":
        row = rows["alarms"]  # it is a property of the component, which is updated
    return Effect(*setting, *row)


def fleet_of(plan: DeploymentPlan, changed: Mapping[str, Setting]) -> str:
    """Returns what starts beside the old fleet because of changes, and the quota for both."""
    if plan.component is not None:
        return "new copies start beside the old ones, on instances with room for a batch"
    parts = []
    for variant in plan.every_variant:
        names = (f"endpoint.instances of {variant.name}", "endpoint.instances")
        olds = [changed[name][1] or "" for name in names if name in changed]
        is_other_type = bool(olds) and not {*olds[0].split(", ")} & {*variant.instance_types}
        parts.append(_of_variant(variant, plan, is_other_type=is_other_type))
    return " and ".join(parts)


def _of_variant(variant: VariantPlan, plan: DeploymentPlan, *, is_other_type: bool) -> str:
    if variant.serverless is not None:
        return "new containers start with the next requests"
    scaling = None if variant is plan.shadow else plan.config.autoscaling
    # An update keeps the number of instances that scaling chose.
    most = variant.instance_count if scaling is None else scaling.largest_count
    count = f"{most}" if scaling is None else f"{scaling.smallest_count} to {most}"
    new, how = most, "beside the old fleet, within minutes"
    if plan.rollout is not None and plan.rollout.strategy == ROLLING:
        new = plan.rollout.step_of(most)
        how = f"in batches of {new}"
    quota = most if is_other_type else most + new
    return f"{count} x {', or '.join(variant.instance_types)} start {how}; quota of {quota}"


def _settings(plan: DeploymentPlan, owns: Collection[str]) -> Iterator[tuple[str, Any]]:
    """Yields what the template is made of, by the names of config fields where they have one.

    `owns` has the variants and types whose own models are compared, or the endpoint's in their
    place.
    """
    environment, config = plan.environment, plan.config
    yield "stack", f"{plan.stack_name} in {environment.account}/{environment.region}"
    if plan.is_adapter:
        yield "adapter_of", config.adapter_of
        yield "adapter.artifact", plan.artifact.s3_uri
        yield "description", config.description
        yield from ((f"tag {name}", each) for name, each in plan.tags.items())
        yield from _flat("alarms", config.alarms.model_dump())
        return
    yield from _of_model(plan, "")
    for each in (*plan.every_variant, *plan.overrides):
        if each.name in owns:
            yield from _of_model(plan.served_by(each), f" of {each.name}")
    yield "description", config.description
    yield "environment.log_key", environment.log_key
    yield "environment.permissions_boundary_arn", environment.permissions_boundary_arn
    if plan.guests:
        yield "guests", "a parameter tells them the role"
    yield from ((f"tag {name}", each) for name, each in plan.tags.items())
    yield from _flat("alarms", config.alarms.model_dump())
    yield from _flat("autoscaling", config.autoscaling and config.autoscaling.model_dump())
    yield from _flat("rollout", plan.rollout and plan.rollout.model_dump())
    yield from _of_endpoint(plan)


def _of_model(served: ServedModel, suffix: str) -> Iterator[tuple[str, Any]]:
    yield f"image{suffix}", served.image.uri
    yield f"image.credentials{suffix}", served.image.credentials_function_arn
    yield f"artifact{suffix}", served.artifact.data_uri
    yield f"artifacts.accept_eula{suffix}", served.artifact.accepts_eula or None
    for name, value in served.container_environment.items():
        yield f"variable {name}{suffix}", value


def _of_endpoint(plan: DeploymentPlan) -> Iterator[tuple[str, Any]]:
    component = plan.component
    yield from _flat("endpoint", plan.config.endpoint.model_dump(exclude=_DERIVED))
    yield "endpoint.data_capture.place", plan.capture and [plan.capture.uri, plan.capture.key]
    yield from _flat("endpoint.vpc", plan.vpc and vars(plan.vpc))
    sized = plan.config.endpoint.capacity
    yield from _flat("endpoint.serverless", sized and sized.model_dump())
    yield "endpoint.variants", [each.name for each in plan.every_variant]
    overriding = (each.instance_types for each in plan.overriding)
    yield "endpoint.model_overrides", [name for types in overriding for name in types]
    if component is not None:
        yield from _flat(_COPIES, component.settings.model_dump())
        yield f"{_COPIES}.accelerators_per_copy", component.accelerators_per_copy
        yield f"{_COPIES}.vcpus_per_copy", component.vcpus_per_copy
        if plan.host is None:
            yield "endpoint.max_instance_count", plan.max_instance_count
    for variant in plan.every_variant:
        fields = dict(vars(variant), instances=variant.instance_types)
        for name in ("name", "instance_types", "gpu_count", "own", "serverless"):
            del fields[name]
        if variant is plan.shadow:
            share = 100 * fields.pop("weight")
            yield f"endpoint.shadow.sampling_percent of {variant.name}", share
        for name, value in fields.items():
            if plan.host is None or name.endswith("_timeout_seconds"):
                yield f"endpoint.{name} of {variant.name}", value


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        yield name, value
    else:
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}", inner)


def as_text(value: Any) -> str | None:
    """Returns a setting's value as people read it; None where it is not set."""
    if isinstance(value, list | tuple):
        return ", ".join(filter(None, map(as_text, value))) or None
    if isinstance(value, Mapping):
        return " ".join(filter(None, map(as_text, value.values())))
    if isinstance(value, bool):
        return str(value).lower()
    return value if value is None else f"{value:g}" if isinstance(value, float) else str(value)
