"""What is hosted where: the compact table gives back what its source says."""

import importlib.util
import json
from pathlib import Path

import pytest

from slipway.facts.instances import instance_types
from slipway.facts.regions import hosted_types, hosting_regions
from slipway.facts.tables import read_table

TABLE = read_table("regions.json")


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


@pytest.mark.parametrize("region", TABLE["regions"])
def test_regions_are_plausible(region):
    here, row = hosted_types(region), TABLE["regions"][region]
    assert len(here) >= 40
    assert here <= set(instance_types())
    # No type is listed as a family and on its own.
    assert not {name.split(".")[1] for name in row["types"]} & set(row["families"])


def test_the_answers_are_cfn_lints():
    (source,) = TABLE["sources"]
    assert source.startswith("cfn-lint ")
    # Importing the package takes seconds.
    package = importlib.util.find_spec("cfnlint")
    folder = Path(package.origin).parent / "data/schemas/extensions/aws_sagemaker_hosting"
    lists = json.loads((folder / "instancetype_enum.json").read_text("utf-8"))
    del lists["description"]
    assert set(lists) == set(TABLE["regions"])
    accepted = set(instance_types())
    for region, item in lists.items():
        assert hosted_types(region) == accepted & set(item["enum"]), region
