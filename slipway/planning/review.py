"""What a reviewer asks of a change: the plans before and after it, side by side."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeVar

from slipway.planning.bill import Bill, Part, bill_of
from slipway.planning.consequences import Consequence, Consequences, as_text, consequences
from slipway.planning.cost import UsdPerMonth
from slipway.planning.execution_rights import RoleContext, execution_rights
from slipway.planning.memory_estimate import counted
from slipway.planning.plan import ArtifactPlan, DeploymentPlan, ServedModel
from slipway.planning.statements import Key, Statement

T = TypeVar("T")
NEW, REMOVED, RENAMED, UNKNOWN = "new", "removed", "renamed", "unknown"
# An account's key and security groups are the same before and after, whatever their names are.
_CONTEXT = RoleContext("aws", Key("the artifact key"), ("the foundation's",))


@dataclass(frozen=True)
class Change:
    """A value before and after; None on a side that has none."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class BillChange:
    """A part of the bill before and after; None on a side that has none."""

    before: Part | None
    after: Part | None


@dataclass(frozen=True)
class Reach:
    """What the containers may do before a change or after it, and not on both sides.

    The text is such as `s3:PutObject on arn:aws:s3:::bucket/prefix/*`.
    """

    is_wider: bool
    text: str


@dataclass(frozen=True)
class ModelReview:
    """One model in one environment, before and after a change.

    Args:
        verdict: the strongest consequence of a deploy, or `new`, `removed`, `renamed`, or `unknown`
            where the base has no valid plan.
        reason: what the verdict means, as half a sentence.
        consequences: of each edit; None unless both sides have a plan.
        cost_before: total of the bill a month; None without a plan.
        known_before: the part of `cost_before` whose price is known, as expected.
        bill: each part of it that differs, with the dashboard, which is in no total.
        changes: what follows from the edits: files, memory, keys of serving.properties.
        warnings: of the plan after the change.
    """

    model: str
    environment: str
    verdict: str
    reason: str
    consequences: Consequences | None = None
    cost_before: UsdPerMonth | None = None
    cost_after: UsdPerMonth | None = None
    known_before: float | None = None
    known_after: float | None = None
    bill: tuple[BillChange, ...] = ()
    changes: tuple[Change, ...] = ()
    reach: tuple[Reach, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def is_refused(self) -> bool:
        return self.verdict == Consequence.REFUSED

    @property
    def is_destructive(self) -> bool:
        """Returns whether requests fail for a while, or a stack has to be destroyed."""
        return self.verdict in (Consequence.GAP, Consequence.DESTROY, REMOVED, RENAMED)


def review(before: DeploymentPlan | None, after: DeploymentPlan | None) -> ModelReview | None:
    """Compares the plans of one model in one environment; None where nothing differs."""
    plan = after or before
    if plan is None:
        return None
    model, environment = plan.config.name, plan.environment.name
    old, new = (None if each is None else bill_of(each) for each in (before, after))
    found = ModelReview(
        model,
        environment,
        REMOVED,
        _removed(model, environment),
        cost_before=old.total if old else None,
        cost_after=new.total if new else None,
        known_before=old.known if old else None,
        known_after=new.known if new else None,
    )
    if after is None:
        return found
    found = replace(
        found,
        verdict=NEW,
        reason=_fleet(after),
        bill=tuple(BillChange(*each) for _, *each in _differing(_billed(old), _billed(new))),
        changes=tuple(Change(*each) for each in _differing(_told(before), _told(after))),
        reach=_reach(before, after),
        warnings=tuple(each.message for each in after.warnings),
    )
    if before is None:
        return found
    effects = consequences(before, after)
    if effects.verdict is None:
        return None
    verdict, reason = str(effects.verdict), effects.summary
    if before.config.name != model:
        verdict, reason = RENAMED, _renamed(before.config.name, model)
    return replace(found, verdict=verdict, reason=reason, consequences=effects)


def without_base(
    model: str, former: str, environment: str, error: str, *, is_removed: bool
) -> ModelReview:
    """Returns the review of a model whose base, under its former name, has no valid plan.

    If its file or its environment is removed, a stack may stay, whatever its plan was.
    """
    verdict = REMOVED if is_removed else RENAMED if former != model else UNKNOWN
    meant = {REMOVED: _removed(model, environment), RENAMED: _renamed(former, model)}
    told = (meant.get(verdict), f"the base has no valid plan: {error}")
    return ModelReview(model, environment, verdict, "; ".join(filter(None, told)))


def _renamed(former: str, model: str) -> str:
    return f"{former} -> {model}, destroy and create (the endpoint's name changes)"


def _removed(model: str, environment: str) -> str:
    return f"its stack stays and is billed until `slipway destroy {model} --env {environment}`"


def _fleet(plan: DeploymentPlan) -> str:
    if plan.is_adapter:
        return f"an adapter in the copies of {plan.host}"
    if plan.host is not None:
        return f"copies on the endpoint of {plan.host}"
    return " and ".join(each.machines for each in plan.every_variant)


def _billed(bill: Bill | None) -> dict[str, Part]:
    if bill is None:
        return {}
    found = list(bill.parts)
    if (price := bill.cost.dashboard) is not None:
        name = f"dashboard beyond the first {price.free_dashboards} of the account"
        found.append(Part(name, UsdPerMonth(*[price.usd_per_month] * 3)))
    return {each.name: each for each in found}


def _told(plan: DeploymentPlan | None) -> dict[str, str]:
    if plan is None:
        return {}
    found = _told_of_model(plan, "")
    for name, own in plan.own_models.items():
        found |= _told_of_model(own, f" of {name}")
    # Without the line, which any edit above it changes.
    found |= {
        f"default {each.field}": f"{as_text(each.value)} ({each.place.path})"
        for each in plan.defaults
    }
    return found


def _told_of_model(served: ServedModel, suffix: str) -> dict[str, str]:
    files = {"artifact": served.artifact, "weights": served.weights}
    found = {name: _artifact(each) for name, each in files.items() if each is not None}
    if served.memory is not None:
        found["memory"] = f"about {served.memory.total_gib:.1f} of {served.memory.room}"
    found |= {f"property {key}": value for key, value in served.serving_properties.items()}
    return {f"{name}{suffix}": text for name, text in found.items()}


def _artifact(artifact: ArtifactPlan) -> str:
    if not artifact.published:
        return "not published"
    files = counted(artifact.file_count, "file")
    return f"{artifact.size_bytes / 1e9:.3g} GB in {files}, for {artifact.target}"


def _differing(
    before: Mapping[str, T], after: Mapping[str, T]
) -> Iterator[tuple[str, T | None, T | None]]:
    for name in dict.fromkeys((*before, *after)):
        if before.get(name) != after.get(name):
            yield name, before.get(name), after.get(name)


def _reach(before: DeploymentPlan | None, after: DeploymentPlan | None) -> tuple[Reach, ...]:
    # Every endpoint has the rights to serve. In another stack, the old one keeps its own.
    serves = before is None or after is None or before.stack_name != after.stack_name
    olds, news = (
        dict.fromkeys(_reached(each, without="Serving" if serves else ""))
        for each in (before, after)
    )
    wider = [each for each in news if each not in olds]
    narrower = [each for each in olds if each not in news]
    return tuple(
        Reach(is_wider, text)
        for is_wider, sides in ((True, wider), (False, narrower))
        for text in _by_resource(sides)
    )


def _reached(plan: DeploymentPlan | None, *, without: str) -> Iterator[tuple[str, str]]:
    if plan is None or plan.is_adapter:
        return
    if not plan.config.endpoint.network_isolation:
        way = "" if plan.vpc is None else ", by way of the VPC"
        yield "reach", f"addresses outside of the container{way}"
    if plan.vpc is not None:
        groups = plan.vpc.security_group_ids or _CONTEXT.security_group_ids
        yield from (("join", f"the subnet {each}") for each in plan.vpc.subnet_ids)
        yield from (("join", f"the security group {each}") for each in groups)
    if (role := plan.config.endpoint.execution_role_arn) is not None:
        yield "do", f"all that the role {role} may"
    elif plan.host is None:
        for policy in execution_rights(plan, _CONTEXT):
            for each in policy.statements if policy.name != without else ():
                limits = _limits(each)
                yield from product(each.actions, (f"{name}{limits}" for name in each.resources))


def _limits(statement: Statement) -> str:
    """Returns the conditions of a right, each as half a sentence."""
    pairs = [pair for keys in statement.conditions.values() for pair in keys.items()]
    return "".join(
        f", if {key} is {value if isinstance(value, str) else ' or '.join(value)}"
        for key, value in pairs
    )


def _by_resource(reached: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yields a line for each thing, with all that may be done with it."""
    actions: dict[str, list[str]] = {}
    for action, thing in reached:
        actions.setdefault(thing, []).append(action)
    for thing, done in actions.items():
        preposition = " on" if ":" in done[0] else ""
        yield f"{', '.join(done)}{preposition} {thing}"
