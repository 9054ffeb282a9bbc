"""What a reviewer should know, and what stops nothing: each a function, as the rules are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from slipway.facts.regions import hosted_types, hosting_regions
from slipway.planning.memory import estimate
from slipway.planning.plan import ArtifactPlan, PlanWarning
from slipway.planning.rules.situation import Situation

_NEARLY_FULL = 0.9


@dataclass(frozen=True)
class Subject:
    """What there is to say something about."""

    situation: Situation
    artifact: ArtifactPlan


Advice = Callable[[Subject], Iterator[PlanWarning]]


def unpublished(subject: Subject) -> Iterator[PlanWarning]:
    """Such a plan is for reading and linting."""
    if not subject.artifact.published:
        yield PlanWarning(
            "unpublished", "The artifact is not published: SageMaker would refuse this."
        )


def single_instance(subject: Subject) -> Iterator[PlanWarning]:
    """One instance lies in one zone."""
    config = subject.situation.config
    least = (
        config.autoscaling.min_instance_count if config.autoscaling
        else config.endpoint.instance_count
    )  # fmt: skip
    if least == 1:
        yield PlanWarning(
            "single-instance",
            "One instance at rest: if it or its zone fails, the endpoint is down meanwhile.",
        )


def not_listed_in_region(subject: Subject) -> Iterator[PlanWarning]:
    """Not every type is hosted in every region. The list follows AWS's prices, which lag behind."""
    situation = subject.situation
    region = situation.environment.region
    here = hosted_types(region)
    for name in (instance.name for instance in situation.instances):
        somewhere = hosting_regions(name)
        if here is not None and somewhere is not None and name not in here:
            yield PlanWarning(
                "type-not-in-region",
                f"{name} is not in AWS's list of hosting types of {region}, so the endpoint may "
                f"fail to start there; it is in the lists of {', '.join(somewhere)}.",
            )


def memory_nearly_full(subject: Subject) -> Iterator[PlanWarning]:
    """The estimate has an assumption in it; this near the end it should be measured."""
    situation = subject.situation
    for instance in situation.instances:
        memory = estimate(situation.config, instance)
        if memory is None or memory.total_gib <= _NEARLY_FULL * memory.available_gib:
            continue
        cache = "unknown" if memory.cache_gib is None else f"{memory.cache_gib:.1f}"
        yield PlanWarning(
            "memory-nearly-full",
            f"{instance.name} has {memory.available_gib:.1f} GiB for an estimated "
            f"{memory.total_gib:.1f}: weights {memory.weights_gib:.1f}, cache {cache}, assumed for "
            f"the rest {memory.overhead_gib:.1f}.",
        )


ADVICE: tuple[Advice, ...] = (
    unpublished,
    single_instance,
    not_listed_in_region,
    memory_nearly_full,
)
