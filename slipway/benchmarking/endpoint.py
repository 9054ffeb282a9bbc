"""The endpoint that is measured: its instances, and what they cost an hour."""

from dataclasses import dataclass
from typing import Any

from slipway.access import Access
from slipway.config.environments import Environment
from slipway.deployed.calls import describe_endpoint, described_config
from slipway.facts.prices import instance_price_per_hour
from slipway.planning.placements import SERVERLESS


@dataclass(frozen=True)
class Endpoint:
    """Which endpoint is asked, through its inference component where it has one."""

    model: str
    environment: Environment
    name: str
    component: str | None
    access: Access


@dataclass(frozen=True)
class Instances:
    """The instances of one variant; of several types if they come from a pool."""

    variant: str
    types: tuple[str, ...]
    count: int

    def __str__(self) -> str:
        if self.types == (SERVERLESS,):
            return SERVERLESS
        return f"{self.count} x {' or '.join(self.types) or 'unknown'}"


def look_at_instances(sagemaker: Any, endpoint_name: str) -> tuple[Instances, ...]:
    """Returns the instances that an endpoint has now; none if it is gone."""
    described = describe_endpoint(sagemaker, endpoint_name) or {}
    name = described.get("EndpointConfigName")
    config = (name and described_config(sagemaker, name)) or {}
    types = {}
    for each in config.get("ProductionVariants", ()):
        pools = each.get("InstancePools", ()) if "InstanceType" not in each else (each,)
        types[each["VariantName"]] = tuple(pool["InstanceType"] for pool in pools)
        if "ServerlessConfig" in each:
            types[each["VariantName"]] = (SERVERLESS,)
    counts = {
        each["VariantName"]: int(each.get("CurrentInstanceCount", 0))
        for each in described.get("ProductionVariants", ())
    }
    return tuple(Instances(name, types.get(name, ()), count) for name, count in counts.items())


def cost_per_hour(
    instances: tuple[Instances, ...], variant: str | None, environment: Environment
) -> tuple[float | None, str]:
    """Returns what a variant's instances cost an hour on demand, in USD, and where that is from.

    None stands for all variants. If a price is unknown there is no cost, and the text says why.
    """
    if environment.is_local:
        return None, "the embedded AWS runs on this machine, which has no price"
    total = 0.0
    dates = set()
    for each in instances:
        if variant is not None and each.variant != variant:
            continue
        if len(each.types) != 1:
            return None, f"the type of the instances of {each.variant} is not known"
        price = instance_price_per_hour(each.types[0], environment.region)
        if price is None:
            return None, f"no published price of {each.types[0]} in {environment.region}"
        total += price.usd * each.count
        dates.add(price.as_of.isoformat())
    if not dates:
        return None, "no instance was seen"
    return total, f"on demand, prices of {', '.join(sorted(dates))}"
