"""Writes slipway/facts/regions.json: `python -m tools.refresh_facts.regions`.

cfn-lint ships, for each region, the hosting instance types in AWS's price list. The table keeps
them as whole families and, where a region has a part of a family, single types.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

from tools.refresh_facts.tables import (
    FACTS,
    SourceError,
    hosting_instance_types,
    package_file,
    package_version,
    run,
)

LISTS = "cfnlint/data/schemas/extensions/aws_sagemaker_hosting/instancetype_enum.json"


def families_of(names: Collection[str]) -> dict[str, list[str]]:
    families: dict[str, list[str]] = {}
    for name in names:
        _, family, size = name.split(".")
        families.setdefault(family, []).append(size)
    return families


def compact(hosted: Collection[str], families: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Returns a region's types: whole families, and single types of families that it has partly."""
    whole, single = [], []
    for family, sizes in families.items():
        there = [name for size in sizes if (name := f"ml.{family}.{size}") in hosted]
        if len(there) == len(sizes):
            whole.append(family)
        else:
            single += there
    return {"families": whole, "types": single}


def make() -> Mapping[str, Any]:
    lists: dict[str, Any] = json.loads(package_file("cfn-lint", LISTS).read_text("utf-8"))
    lists.pop("description", None)
    if not all(isinstance(item, dict) and set(item) == {"enum"} for item in lists.values()):
        raise SourceError(f"{LISTS} no longer holds one `enum` a region")
    listed = {name for item in lists.values() for name in item["enum"]}
    # The price list has more names than hosting accepts, and lacks some that it does accept.
    families = families_of([name for name in hosting_instance_types() if name in listed])
    source = (
        f"cfn-lint {package_version('cfn-lint')}, {LISTS}: the hosting instance types in AWS's "
        "price list of each region, of those that SageMaker's ProductionVariantInstanceType names "
        f"in botocore {package_version('botocore')}"
    )
    return {
        "sources": [source],
        "families": families,
        "regions": {
            region: compact(item["enum"], families) for region, item in sorted(lists.items())
        },
    }


if __name__ == "__main__":
    raise SystemExit(run(FACTS / "regions.json", make, levels=3))
