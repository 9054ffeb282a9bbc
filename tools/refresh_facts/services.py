"""Writes slipway/facts/services.json: what CloudWatch, S3 and Lambda charge for a unit.

`python -m tools.refresh_facts.services` asks AWS's Pricing API as `prices` does.
"""

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from botocore.client import BaseClient

from tools.refresh_facts.prices import Table, connect, on_demand, refresh
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


def region_prices(client: BaseClient, region: str) -> Table:
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
    return {"usd": prices}


def main(
    arguments: Sequence[str], *, path: Path = PATH, connect: Callable[[], BaseClient] = connect
) -> int:
    return refresh(arguments, path, connect, region_prices, DESCRIPTION)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
