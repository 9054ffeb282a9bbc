"""All that a plan's account is billed for: instances, volumes, alarms, the dashboard and files.

`cost.py` has the sums. What depends on use is named with its price, and is in no sum.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_jsonable_python

from slipway.config.alarm_kinds import Watch
from slipway.config.alarms_of_modes import watch_of
from slipway.config.capacity_alarm import CAPACITY_WATCHES
from slipway.config.sections.alarms import ALARM_KINDS
from slipway.facts.prices import Price, service_price, volume_price_per_gb_month
from slipway.planning.cost import (
    HOURS_PER_MONTH,
    CostEstimate,
    PriceSource,
    UsdPerMonth,
    sum_of,
    times,
)
from slipway.planning.plan import ArtifactPlan, DeploymentPlan
from slipway.planning.resources import resources_of
from slipway.planning.rollout import new_fleet_alarms

_GB = 1e9
# One above the target and one below it, which Application Auto Scaling makes itself.
_TRACKING_ALARMS = 2


@dataclass(frozen=True)
class Item:
    """A part of the bill.

    Without a `quantity` it depends on use. `usd_each` is of one unit, each month where the quantity
    is known. A price that no source gives is None.
    """

    name: str
    quantity: float | None
    unit: str
    usd_each: float | None
    usd_per_month: float | None


@dataclass(frozen=True)
class Part:
    """A summand of the total; the quantity is None of instances and volumes."""

    name: str
    usd: UsdPerMonth
    quantity: float | None = None
    unit: str = ""


@dataclass(frozen=True)
class Bill:
    """What a plan costs.

    Args:
        usd_per_hour: of the instances: the fewest, those at creation, and the most.
        items: of the same cost in every month.
        total: of instances, volumes and items a month; a bound is None while a part is unknown.
            The dashboard is in no sum, because an account has some for nothing.
        sources: of every price, each once.
    """

    model: str
    environment: str
    cost: CostEstimate
    usd_per_hour: UsdPerMonth
    items: tuple[Item, ...]
    by_use: tuple[Item, ...]
    total: UsdPerMonth
    sources: tuple[PriceSource, ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        return _parts(self.cost, self.items)

    @property
    def known(self) -> float | None:
        """Returns the expected cost of the parts whose price is known; None without instances'."""
        if self.cost.instances.expected is None:
            return None
        return round(sum(each.usd.expected or 0.0 for each in self.parts), 2)

    def as_json(self) -> dict[str, Any]:
        """Returns it as data; an unknown price is null."""
        found: dict[str, Any] = to_jsonable_python(self)
        return found


def bill_of(
    plan: DeploymentPlan, price: Callable[[str, str], Price | None] = service_price
) -> Bill:
    used: list[Price] = []

    def item(name: str, quantity: float | None, unit: str, row: str) -> Item:
        found = price(row, plan.environment.region)
        if found is not None:
            used.append(found)
        usd = found.usd if found else None
        whole = None if quantity is None else times(quantity, usd)
        return Item(name, quantity, unit, usd, None if whole is None else round(whole, 4))

    def fixed() -> Iterator[Item]:
        minutes, fast = _alarm_metrics(plan)
        if minutes:
            yield item("alarms", minutes, "metrics", "alarm_metric_month")
        if fast:
            yield item("alarms by 10 s", fast, "metrics", "fast_alarm_metric_month")
        found: dict[ArtifactPlan, str] = {}
        models = {f" of {name}": own for name, own in plan.own_models.items()}
        for suffix, served in {"": plan, **models}.items():
            for name, files in (("artifact", served.artifact), ("weights", served.weights)):
                # Models may share files.
                if files is not None and files.published:
                    found.setdefault(files, f"{name}{suffix} in S3")
        for files, name in found.items():
            yield item(name, files.size_bytes / _GB, "GB", "storage_gb_month")

    def by_use() -> Iterator[Item]:
        yield item("logs, written", None, "GB", "log_gb")
        yield item("logs, kept", None, "GB and month", "log_gb_month")
        if "AWS::Lambda::Function" in resources_of(plan):
            yield item("Lambda, at deploys", None, "million calls", "lambda_million_requests")
            yield item("Lambda, at deploys", None, "GB-second", "lambda_gb_second")
        if not plan.artifact.published:
            yield item("artifact in S3, not published", None, "GB and month", "storage_gb_month")
        if plan.capture is not None:
            yield item("captured data in S3", None, "GB and month", "storage_gb_month")
        # AWS charges for them too, and no source here has the price.
        yield Item("traffic out of AWS", None, "GB", None, None)
        if plan.config.endpoint.capacity is not None:
            # No source here has these prices either.
            yield Item("serverless, of requests", None, "GB-second", None, None)
            yield Item("serverless, kept started", None, "GB-second", None, None)
        elif plan.host is None and plan.cost.volumes is None:
            volume = volume_price_per_gb_month(plan.environment.region)
            name, usd = "EBS volumes, if the type has them", volume.usd if volume else None
            yield Item(name, None, "GB and month", usd, None)

    items, uses = tuple(fixed()), tuple(by_use())
    sources = [PriceSource(each.as_of.isoformat(), each.source) for each in used]
    if plan.cost.dashboard is not None:
        sources.append(PriceSource(plan.cost.dashboard.as_of, plan.cost.dashboard.source))
    return Bill(
        plan.config.name,
        plan.environment.name,
        plan.cost,
        _hourly(plan.cost.instances),
        items,
        uses,
        sum_of([each.usd for each in _parts(plan.cost, items)]),
        tuple(dict.fromkeys([*plan.cost.sources, *sources])),
    )


def _parts(cost: CostEstimate, items: Sequence[Item]) -> tuple[Part, ...]:
    return (
        Part("instances", cost.instances),
        *([Part("volumes", cost.volumes)] if cost.volumes is not None else []),
        *(
            Part(each.name, UsdPerMonth(*[each.usd_per_month] * 3), each.quantity, each.unit)
            for each in items
        ),
    )


def _hourly(cost: UsdPerMonth) -> UsdPerMonth:
    months = (cost.minimum, cost.expected, cost.maximum)
    return UsdPerMonth(*(None if m is None else round(m / HOURS_PER_MONTH, 4) for m in months))


def _alarm_metrics(plan: DeploymentPlan) -> tuple[int, int]:
    """Returns the metrics of alarms by the minute, and of those by ten seconds.

    CloudWatch bills each metric of an alarm's formula.
    """
    config, scaling, component = plan.config, plan.config.autoscaling, plan.component
    there = [each for each in ALARM_KINDS.values() if config.alarms.threshold(each) is not None]
    found = (watch_of(kind, config.endpoint.mode) for kind in there)
    watches: list[Watch] = [watch for watch in found if watch is not None]
    if plan.rollout is not None:
        watches += [ALARM_KINDS[name].watch for name in new_fleet_alarms(config)]
    if plan.at_max_capacity is not None:
        watches.append(CAPACITY_WATCHES[config.endpoint.mode])
    of_variant = sum(len(watch.metrics) for watch in watches)
    tracked = fast = 0
    if scaling is not None:
        of_variant += scaling.step_policy_count
        tracked = _TRACKING_ALARMS
        fast = tracked * (scaling.target_concurrent_requests_per_instance is not None)
    elif component is not None:
        of_variant += component.sleeps  # the alarm of the policy that wakes it
        tracked = _TRACKING_ALARMS
        fast = tracked * (component.settings.target_concurrent_requests_per_copy is not None)
    variants = len(plan.variants)
    return variants * (of_variant + tracked - fast), variants * fast
