"""What hosting costs, and where: sourced prices and lists, and None for what is unknown."""

import datetime
import importlib.util
import json
from pathlib import Path

import pytest

from slipway.facts.instances import instance_types
from slipway.facts.prices import (
    Price,
    dashboard_price,
    instance_price_per_hour,
    volume_price_per_gb_month,
)
from slipway.facts.regions import hosted_types, hosting_regions
from slipway.facts.tables import read_table

TABLE = read_table("prices.json")

# fmbench 2.1.1, pricing_fallback.yml: hosting in us-east-1, gathered on its own.
ELSEWHERE = {
    "ml.c5.xlarge": 0.204,
    "ml.c7i.xlarge": 0.214,
    "ml.g4dn.xlarge": 0.7364,
    "ml.g4dn.12xlarge": 4.89,
    "ml.g5.xlarge": 1.4084,
    "ml.g5.2xlarge": 1.515,
    "ml.g5.12xlarge": 7.09,
    "ml.g5.48xlarge": 20.36,
    "ml.g6.2xlarge": 1.222,
    "ml.g6.48xlarge": 16.688,
    "ml.inf2.xlarge": 0.99,
    "ml.inf2.48xlarge": 15.58,
    "ml.m5.xlarge": 0.23,
}

EVERY_PRICE = [
    (region, name, usd)
    for region, by_source in TABLE["instances_usd_per_hour"].items()
    for prices in by_source.values()
    for name, usd in prices.items()
]


def test_a_price_has_its_day_and_source_and_some_dashboards_cost_nothing():
    price = instance_price_per_hour("ml.g4dn.12xlarge", "eu-west-1")
    assert price.usd == 5.453
    assert price.as_of == datetime.date(2023, 12, 31)
    assert price.source.startswith("GitHub aws-samples/sagemaker-ssh-helper, Sample_Costs.md")
    volume = volume_price_per_gb_month("eu-west-1")
    assert volume == Price(0.154, price.as_of, price.source)
    price = dashboard_price("eu-west-1")
    assert (price.usd_per_month, price.free_dashboards, price.free_metrics) == (3.0, 3, 50)
    assert dashboard_price("cn-north-1") is None


def test_what_no_source_gives_is_none():
    # Known elsewhere, doubtful, retired, not a type, not a region.
    assert instance_price_per_hour("ml.g5.xlarge", "eu-west-1") is None
    assert instance_price_per_hour("ml.trn1.2xlarge", "us-east-1") is None
    assert instance_price_per_hour("ml.p3.2xlarge", "us-east-1") is None
    assert instance_price_per_hour("ml.imaginary", "us-east-1") is None
    assert instance_price_per_hour("ml.g5.xlarge", "mars-north-1") is None
    assert volume_price_per_gb_month("us-east-1") is None
    assert volume_price_per_gb_month("mars-north-1") is None


def test_two_sources_agree_to_within_a_cent():
    found = {name: instance_price_per_hour(name, "us-east-1").usd for name in ELSEWHERE}
    assert found == pytest.approx(ELSEWHERE, abs=0.01)


@pytest.mark.parametrize(("region", "name", "usd"), EVERY_PRICE)
def test_prices_are_plausible(region, name, usd):
    assert 0.04 < usd < 200
    assert name in instance_types()
    assert name in (hosted_types(region) or ())
    # No type has two prices.
    assert [row[:2] for row in EVERY_PRICE].count((region, name)) == 1


def test_the_table_says_where_it_is_from():
    used = {
        source
        for by_source in [
            *TABLE["instances_usd_per_hour"].values(),
            *TABLE["volumes_usd_per_gb_month"].values(),
        ]
        for source in by_source
    }
    assert set(TABLE["sources"]) == used
    for source in TABLE["sources"].values():
        assert datetime.date.fromisoformat(source["as_of"])
        assert len(source["description"]) > 20


REGIONS = read_table("regions.json")


def test_a_type_is_in_some_regions_and_a_family_may_be_there_in_part():
    assert "ml.g6e.xlarge" in hosted_types("us-east-1")
    assert "ml.g6e.xlarge" not in hosted_types("eu-west-1")
    assert hosting_regions("ml.p6-b200.48xlarge") == (
        "ap-south-1", "us-east-1", "us-gov-east-1", "us-gov-west-1",
    )  # fmt: skip
    here = hosted_types("af-south-1")
    assert {name for name in here if name.startswith("ml.inf1.")} == {
        "ml.inf1.xlarge", "ml.inf1.2xlarge", "ml.inf1.6xlarge",
    }  # fmt: skip


def test_what_is_listed_nowhere_is_unknown():
    assert hosted_types("eusc-de-east-1") is None
    assert hosted_types("mars-north-1") is None
    # Hosting accepts the names, the price list has none of them.
    assert hosting_regions("ml.p3.2xlarge") is None
    assert hosting_regions("ml.c6in.large") is None
    assert hosting_regions("ml.imaginary.large") is None


@pytest.mark.parametrize("region", REGIONS["regions"])
def test_regions_are_plausible(region):
    here, row = hosted_types(region), REGIONS["regions"][region]
    assert len(here) >= 40
    assert here <= set(instance_types())
    # No type is listed as a family and on its own.
    assert not {name.split(".")[1] for name in row["types"]} & set(row["families"])


def test_the_answers_are_cfn_lints():
    (source,) = REGIONS["sources"]
    assert source.startswith("cfn-lint ")
    # Importing the package takes seconds.
    package = importlib.util.find_spec("cfnlint")
    folder = Path(package.origin).parent / "data/schemas/extensions/aws_sagemaker_hosting"
    lists = json.loads((folder / "instancetype_enum.json").read_text("utf-8"))
    del lists["description"]
    assert set(lists) == set(REGIONS["regions"])
    accepted = set(instance_types())
    for region, item in lists.items():
        assert hosted_types(region) == accepted & set(item["enum"]), region
