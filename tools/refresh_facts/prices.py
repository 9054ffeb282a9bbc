"""Writes slipway/facts/prices.json: on-demand prices of hosting instances and their volumes.

`python -m tools.refresh_facts.prices` asks AWS's Pricing API, which needs credentials that allow
`pricing:GetProducts`. It replaces the prices of the regions that it asked for (`--region`, by
default every region of regions.json that the API covers). price_sources.md tells of other sources.

`python -m tools.refresh_facts.prices --count` prints how many instance types have a price, and asks
nobody.
"""

import argparse
import datetime
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3
from botocore.client import BaseClient
from botocore.exceptions import BotoCoreError, ClientError

from tools.refresh_facts.tables import FACTS, SourceError, hosting_instance_types, run

PATH = FACTS / "prices.json"
API_DESCRIPTION = "AWS Pricing API, ServiceCode AmazonSageMaker, component Hosting"
# The Pricing API of the standard partition has no prices of China, which are not in USD.
_NOT_COVERED = ("cn-",)

Table = dict[str, Any]


def connect() -> BaseClient:
    """Returns a client of the API's end point in us-east-1, which answers for every region."""
    client: BaseClient = boto3.client("pricing", region_name="us-east-1")
    return client


def covered_regions() -> list[str]:
    """Returns the regions of regions.json for which the Pricing API has prices in USD."""
    table = json.loads((FACTS / "regions.json").read_text("utf-8"))
    return [region for region in table["regions"] if not region.startswith(_NOT_COVERED)]


def on_demand(
    client: BaseClient, service: str, **fields: str
) -> Iterator[tuple[dict[str, str], Table, float]]:
    """Yields the attributes of each product, a dimension of its price, and the USD of a unit.

    `fields` are attributes that the products have. A price of 0 belongs to a free tier and is left
    out.
    """
    pages = client.get_paginator("get_products").paginate(
        ServiceCode=service,
        Filters=[
            {"Type": "TERM_MATCH", "Field": field, "Value": value}
            for field, value in fields.items()
        ],
        FormatVersion="aws_v1",
    )
    for page in pages:
        for product in map(json.loads, page["PriceList"]):
            for term in product["terms"].get("OnDemand", {}).values():
                for dimension in term["priceDimensions"].values():
                    if usd := float(dimension["pricePerUnit"].get("USD", 0)):
                        yield product["product"]["attributes"], dimension, usd


def with_prices(
    table: Table, found: Mapping[str, Mapping[str, Any]], today: datetime.date, description: str
) -> Table:
    """Returns a table with the API's prices of regions, sorted, with the sources that it still has.

    `found` has the prices of each part of the table by region; None where there are none. Prices
    that were read on another day stay under that day.
    """
    source = f"pricing-api-{today.isoformat()}"
    row = {"as_of": today.isoformat(), "description": description}
    known = {**table.get("sources", {}), source: row}
    parts: dict[str, dict[str, Any]] = {}
    for part in next(iter(found.values())):
        asked = {region: {source: prices[part]} for region, prices in found.items()}
        merged = {**table.get(part, {}), **asked}
        parts[part] = {
            region: by_source
            for region, by_source in sorted(merged.items())
            if by_source != {source: None}
        }
    used = {name for part in parts.values() for by_source in part.values() for name in by_source}
    return {"sources": {name: known[name] for name in sorted(used)}, **parts}


def refresh(
    arguments: Sequence[str],
    path: Path,
    connect: Callable[[], BaseClient],
    ask: Callable[[BaseClient, str], Mapping[str, Any]],
    description: str,
) -> int:
    """Writes a table with the API's prices in place of all prices of regions."""
    parser = argparse.ArgumentParser(description=f"Write {path.name} anew.")
    parser.add_argument("--region", action="append", help="ask for this region; may be repeated")
    regions = parser.parse_args(arguments).region or covered_regions()
    today = datetime.datetime.now(datetime.UTC).date()
    try:
        old = json.loads(path.read_text("utf-8")) if path.exists() else {}
        client = connect()
        found = {region: ask(client, region) for region in regions}
    except (SourceError, BotoCoreError, ClientError) as error:
        print(f"Not refreshed: {path.name} is as it was: {error}", file=sys.stderr)
        return 1
    return run(path, lambda: with_prices(old, found, today, description), levels=4)


def region_prices(client: BaseClient, region: str) -> Table:
    """Returns USD per hour by instance type, and USD per GB-month of a volume or None.

    A type with several prices is left out, because nothing says which price holds. Raises
    `SourceError` if the API lists no price for hosting there, which is not a usable answer.
    """
    service, accepted = "AmazonSageMaker", set(hosting_instance_types())
    hourly: dict[str, set[float]] = {}
    found = on_demand(client, service, regionCode=region, component="Hosting")
    for attributes, dimension, usd in found:
        name = attributes.get("instanceName", "")
        if name in accepted and dimension["unit"] == "Hrs":
            hourly.setdefault(name, set()).add(usd)
    found = on_demand(client, service, regionCode=region, volumeType="General Purpose-Hosting")
    volume = {usd for _, dimension, usd in found if dimension["unit"] == "GB-Mo"}
    prices = {name: usd.pop() for name, usd in sorted(hourly.items()) if len(usd) == 1}
    if not prices:
        raise SourceError(f"the Pricing API lists no hosting instance in {region}")
    return {
        "instances_usd_per_hour": prices,
        "volumes_usd_per_gb_month": volume.pop() if len(volume) == 1 else None,
    }


def counted(table: Table) -> str:
    """Returns how many instance types have a price, as a sentence: in each region, and in all."""
    counts = {
        region: len({name for prices in by_source.values() for name in prices})
        for region, by_source in table.get("instances_usd_per_hour", {}).items()
    }
    each = ", ".join(
        f"{region} {count}" for region, count in sorted(counts.items(), key=lambda item: -item[1])
    )
    return (
        f"prices.json: of {len(hosting_instance_types())} instance types, these have a price: "
        f"{each or 'none'}. All others are unknown."
    )


def main(
    arguments: Sequence[str], *, path: Path = PATH, connect: Callable[[], BaseClient] = connect
) -> int:
    if list(arguments) == ["--count"]:
        print(counted(json.loads(path.read_text("utf-8"))))
        return 0
    return refresh(arguments, path, connect, region_prices, API_DESCRIPTION)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
