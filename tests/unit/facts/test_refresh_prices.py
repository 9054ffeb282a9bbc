"""Refreshing the prices from the Pricing API: botocore's client with answers of its form."""

import datetime
import json
import re
from typing import Any

import pytest
from botocore.stub import Stubber

from tools.refresh_facts import prices
from tools.refresh_facts.tables import SourceError

TODAY = datetime.date(2026, 5, 6)
HOSTING = {"component": "Hosting"}
VOLUME = {"volumeType": "General Purpose-Hosting"}


def offer(attributes: dict[str, str], usd: str, unit: str, **price: str) -> str:
    """An entry of PriceList, in the form the API answers in; the parts that are read."""
    dimension = {"unit": unit, "beginRange": "0", "endRange": "Inf"}
    dimension["pricePerUnit"] = price or {"USD": usd}
    product = {"sku": "JDZQJFUVUR8SUWHS", "attributes": attributes}
    terms = {"OnDemand": {"term": {"priceDimensions": {"dimension": dimension}}}}
    return json.dumps({"product": product, "serviceCode": "AmazonSageMaker", "terms": terms})


def hosting(name: str, usd: str, **price: str) -> str:
    attributes = {
        "instanceName": name,
        "instanceType": f"{name}-Hosting",
        "component": "Hosting",
        "usagetype": f"USE1-Host:{name}",
        "operation": "RunInstance",
    }
    return offer(attributes, usd, "Hrs", **price)


def volume(usd: str) -> str:
    attributes = {**VOLUME, "usagetype": "USE1-Host:VolumeUsage.gp2"}
    return offer(attributes, usd, "GB-Mo")


def answer(api: Stubber, region: str, filters: dict[str, str], *pages: list[str]) -> None:
    for number, page in enumerate(pages):
        expected: dict[str, Any] = {
            "ServiceCode": "AmazonSageMaker",
            "Filters": [
                {"Type": "TERM_MATCH", "Field": field, "Value": value}
                for field, value in {"regionCode": region, **filters}.items()
            ],
            "FormatVersion": "aws_v1",
        }
        if number:
            expected["NextToken"] = f"page-{number}"
        response: dict[str, Any] = {"FormatVersion": "aws_v1", "PriceList": page}
        if number + 1 < len(pages):
            response["NextToken"] = f"page-{number + 1}"
        api.add_response("get_products", response, expected)


def test_a_region_is_read_page_by_page(client, api):
    first, second = hosting("ml.g5.xlarge", "1.4080000000"), hosting("ml.m5.large", "0.1150000000")
    answer(api, "us-east-1", HOSTING, [first], [second])
    answer(api, "us-east-1", VOLUME, [volume("0.1120000000")])
    assert prices.region_prices(client, "us-east-1") == {
        "instances_usd_per_hour": {"ml.g5.xlarge": 1.408, "ml.m5.large": 0.115},
        "volumes_usd_per_gb_month": 0.112,
    }


def test_what_is_ambiguous_free_or_not_ours_has_no_price(client, api):
    answer(
        api, "us-east-1", HOSTING,
        [
            hosting("ml.g5.xlarge", "1.408"),
            # The same price twice is one price.
            hosting("ml.g5.xlarge", "1.408"),
            # Two prices are none.
            hosting("ml.m5.large", "0.115"),
            hosting("ml.m5.large", "0.230"),
            # The free tier is not a price.
            hosting("ml.m4.xlarge", "0.0000000000"),
            # Another currency is not ours.
            hosting("ml.c5.large", "", CNY="1.02"),
            # Priced, and not a name that hosting accepts.
            hosting("ml.c5.12xlarge", "2.448"),
        ],
    )  # fmt: skip
    answer(api, "us-east-1", VOLUME, [volume("0.14"), volume("0.112")])
    assert prices.region_prices(client, "us-east-1") == {
        "instances_usd_per_hour": {"ml.g5.xlarge": 1.408},
        "volumes_usd_per_gb_month": None,
    }


def test_an_empty_answer_is_no_answer(client, api):
    answer(api, "us-east-1", HOSTING, [])
    answer(api, "us-east-1", VOLUME, [])
    with pytest.raises(SourceError) as caught:
        prices.region_prices(client, "us-east-1")
    assert str(caught.value) == "the Pricing API lists no hosting instance in us-east-1"


def published() -> prices.Table:
    return {
        "sources": {
            "bill": {"as_of": "2023-12-31", "description": "a bill"},
            "list": {"as_of": "2026-01-01", "description": "a list"},
        },
        "instances_usd_per_hour": {
            "eu-west-1": {"bill": {"ml.m5.xlarge": 0.257}},
            "us-east-1": {"list": {"ml.m5.large": 0.1, "ml.m5.xlarge": 0.2}},
        },
        "volumes_usd_per_gb_month": {"eu-west-1": {"bill": 0.154}, "us-east-1": {"list": 0.1}},
    }


def priced(usd: float, volume: float | None) -> dict[str, Any]:
    return {"instances_usd_per_hour": {"ml.m5.large": usd}, "volumes_usd_per_gb_month": volume}


def test_the_api_replaces_a_region_and_keeps_the_others():
    found = {"us-east-1": priced(0.115, None)}
    table = prices.with_prices(published(), found, TODAY, prices.API_DESCRIPTION)
    assert table == {
        # The list is gone with the last price that came from it.
        "sources": {
            "bill": {"as_of": "2023-12-31", "description": "a bill"},
            "pricing-api-2026-05-06": {
                "as_of": "2026-05-06",
                "description": "AWS Pricing API, ServiceCode AmazonSageMaker, component Hosting",
            },
        },
        "instances_usd_per_hour": {
            "eu-west-1": {"bill": {"ml.m5.xlarge": 0.257}},
            "us-east-1": {"pricing-api-2026-05-06": {"ml.m5.large": 0.115}},
        },
        "volumes_usd_per_gb_month": {"eu-west-1": {"bill": 0.154}},
    }
    assert list(table) == ["sources", "instances_usd_per_hour", "volumes_usd_per_gb_month"]


def test_what_the_api_said_another_day_keeps_that_day():
    first = prices.with_prices(published(), {"us-east-1": priced(0.115, 0.112)}, TODAY, "")
    day = datetime.date(2026, 7, 8)
    table = prices.with_prices(first, {"eu-west-1": priced(0.115, 0.112)}, day, "")
    assert {name: source["as_of"] for name, source in table["sources"].items()} == {
        "pricing-api-2026-05-06": "2026-05-06",
        "pricing-api-2026-07-08": "2026-07-08",
    }
    assert table["instances_usd_per_hour"] == {
        "eu-west-1": {"pricing-api-2026-07-08": {"ml.m5.large": 0.115}},
        "us-east-1": {"pricing-api-2026-05-06": {"ml.m5.large": 0.115}},
    }
    assert table["volumes_usd_per_gb_month"] == {
        "eu-west-1": {"pricing-api-2026-07-08": 0.112},
        "us-east-1": {"pricing-api-2026-05-06": 0.112},
    }


@pytest.fixture
def path(tmp_path):
    return tmp_path / "prices.json"


def test_the_command_writes_the_table(path, client, api, capsys):
    for _ in range(2):
        answer(api, "us-east-1", HOSTING, [hosting("ml.m5.large", "0.115")])
        answer(api, "us-east-1", VOLUME, [volume("0.112")])
    assert prices.main(["--region", "us-east-1"], path=path, connect=lambda: client) == 0
    table = json.loads(path.read_text("utf-8"))
    [priced] = table["instances_usd_per_hour"]["us-east-1"].items()
    assert priced == (f"pricing-api-{table['as_of']}", {"ml.m5.large": 0.115})
    assert prices.main(["--region", "us-east-1"], path=path, connect=lambda: client) == 0
    assert capsys.readouterr().out == (
        "prices.json: written anew; review the diff.\nprices.json: nothing changed.\n"
    )


def test_a_refusal_of_the_api_leaves_the_table(path, client, api, capsys):
    path.write_text(json.dumps(published()), encoding="utf-8")
    before = path.read_bytes()
    api.add_client_error(
        "get_products", "AccessDeniedException", "not authorized to perform: pricing:GetProducts"
    )
    assert prices.main(["--region", "us-east-1"], path=path, connect=lambda: client) == 1
    assert path.read_bytes() == before
    assert capsys.readouterr().err == (
        "Not refreshed: prices.json is as it was: An error occurred (AccessDeniedException) when "
        "calling the GetProducts operation: not authorized to perform: pricing:GetProducts\n"
    )


def test_the_number_of_prices_is_printed(path, capsys):
    table = published()
    # One type from two sources is one type.
    table["instances_usd_per_hour"]["eu-west-1"]["list"] = {"ml.m5.xlarge": 0.26}
    path.write_text(json.dumps(table), encoding="utf-8")
    before = path.read_bytes()
    assert prices.main(["--count"], path=path) == 0
    assert path.read_bytes() == before
    assert re.fullmatch(
        r"prices\.json: of \d{3} instance types, these have a price: us-east-1 2, eu-west-1 1\. "
        r"All others are unknown\.\n",
        capsys.readouterr().out,
    )
    assert "have a price: none. All others" in prices.counted({})


def test_by_default_every_region_is_asked_that_has_prices_in_usd():
    regions = prices.covered_regions()
    assert {"us-east-1", "eu-west-1", "us-gov-west-1"} <= set(regions)
    assert not [region for region in regions if region.startswith("cn-")]
