"""AWS's Pricing API, from which prices.json and services.json have their newest prices."""

import argparse
import datetime
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import boto3
from botocore.client import BaseClient
from botocore.exceptions import BotoCoreError, ClientError

from tools.refresh_facts.tables import FACTS, SourceError, run

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


def source_of(today: datetime.date, description: str) -> tuple[str, Table]:
    """Returns the name and the row of the source of a day's prices.

    Prices that were read on another day stay under that day.
    """
    row = {"as_of": today.isoformat(), "description": description}
    return f"pricing-api-{today.isoformat()}", row


def refresh_prices(
    arguments: Sequence[str],
    path: Path,
    connect: Callable[[], BaseClient],
    with_api_prices: Callable[[Table, BaseClient, Sequence[str], datetime.date], Table],
    content: Callable[[Table], Table] = dict,
) -> int:
    """Writes a table with the API's prices in place of all prices of regions."""
    parser = argparse.ArgumentParser(description=f"Write {path.name} anew.")
    parser.add_argument("--region", action="append", help="ask for this region; may be repeated")
    regions = parser.parse_args(arguments).region or covered_regions()
    today = datetime.datetime.now(datetime.UTC).date()
    try:
        old = json.loads(path.read_text("utf-8")) if path.exists() else {}
        table = with_api_prices(old, connect(), regions, today)
    except (SourceError, BotoCoreError, ClientError) as error:
        print(f"Not refreshed: {path.name} is as it was: {error}", file=sys.stderr)
        return 1
    return run(path, lambda: content(table), levels=4)
