"""Writes slipway/facts/services.json: what CloudWatch, S3 and Lambda charge for a unit.

`python -m tools.refresh_facts.services` asks AWS's Pricing API, which needs credentials that allow
`pricing:GetProducts`. It replaces the prices of the regions that it asked for (`--region`, by
default every region of regions.json that the API covers).

The first prices come from copies of AWS's price list in public repositories, which services.json
names. Looked for on 2026-11-29, and not there:

- S3 in eu-west-1 and ap-southeast-1, and alarms by ten seconds outside us-east-1. Pages quote
  0.023 USD for S3 in eu-west-1, without a file of AWS's.
- Other regions: copies for ap-northeast-1 and mx-central-1 are known by their text alone, and not
  by the repository that has them.
"""

import datetime
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from botocore.client import BaseClient

from tools.refresh_facts.pricing import (
    Table,
    connect,
    on_demand,
    refresh_prices,
    source_of,
)
from tools.refresh_facts.tables import FACTS, SourceError

PATH = FACTS / "services.json"
DESCRIPTION = "AWS Pricing API, ServiceCode AmazonCloudWatch, AmazonS3 and AWSLambda, first tier"

# The service and the usage type of each row, after the region's prefix, and the units in a row.
_ROWS = {
    "alarm_metric_month": ("AmazonCloudWatch", "CW:AlarmMonitorUsage", 1),
    "fast_alarm_metric_month": ("AmazonCloudWatch", "CW:HighResAlarmMonitorUsage", 1),
    "lambda_gb_second": ("AWSLambda", "Lambda-GB-Second", 1),
    "lambda_million_requests": ("AWSLambda", "Request", 1_000_000),
    "log_gb": ("AmazonCloudWatch", "DataProcessing-Bytes", 1),
    "log_gb_month": ("AmazonCloudWatch", "TimedStorage-ByteHrs", 1),
    "storage_gb_month": ("AmazonS3", "TimedStorage-ByteHrs", 1),
}


def region_prices(client: BaseClient, region: str) -> dict[str, float]:
    """Asks the Pricing API for a region; a row with several prices is left out."""
    found: dict[str, set[float]] = {}
    for service in dict.fromkeys(service for service, _, _ in _ROWS.values()):
        for attributes, dimension, usd in on_demand(client, service, regionCode=region):
            usage = attributes.get("usagetype", "")
            if float(dimension["beginRange"]):
                continue  # not the first tier
            for name, (of, suffix, units) in _ROWS.items():
                if of == service and re.fullmatch(rf"([A-Z0-9]+-)?{re.escape(suffix)}", usage):
                    found.setdefault(name, set()).add(round(usd * units, 10))
    prices = {name: usd.pop() for name, usd in sorted(found.items()) if len(usd) == 1}
    if not prices:
        raise SourceError(f"the Pricing API lists no service of a bill in {region}")
    return prices


def with_api_prices(
    table: Table, client: BaseClient, regions: Sequence[str], today: datetime.date
) -> Table:
    source, described = source_of(today, DESCRIPTION)
    usd = table["usd"] | {each: {source: region_prices(client, each)} for each in regions}
    known = {**table["sources"], source: described}
    used = {name for by_source in usd.values() for name in by_source}
    return {
        "sources": {name: known[name] for name in sorted(used)},
        "usd": dict(sorted(usd.items())),
    }


def main(
    arguments: Sequence[str], *, path: Path = PATH, connect: Callable[[], BaseClient] = connect
) -> int:
    return refresh_prices(arguments, path, connect, with_api_prices)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
