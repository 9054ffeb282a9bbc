"""Refreshing prices and services of a bill from the Pricing API: answers of its form."""

import datetime
import json
import re
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from slipway.facts.tables import read_table
from tools.refresh_facts import prices, services
from tools.refresh_facts.tables import SourceError

TODAY = datetime.date(2026, 5, 6)
HOSTING = {"component": "Hosting"}
VOLUME = {"volumeType": "General Purpose-Hosting"}


@pytest.fixture
def client():
    """Of the Pricing API."""
    return boto3.client(
        "pricing",
        region_name="us-east-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",  # noqa: S106 - nothing is signed for anybody
    )


@pytest.fixture
def api(client):
    """Answers the client, in the order of the answers."""
    with Stubber(client) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


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


def test_a_region_is_read_page_by_page_and_an_empty_answer_is_none(client, api):
    first, second = hosting("ml.g5.xlarge", "1.4080000000"), hosting("ml.m5.large", "0.1150000000")
    answer(api, "us-east-1", HOSTING, [first], [second])
    answer(api, "us-east-1", VOLUME, [volume("0.1120000000")])
    assert prices.region_prices(client, "us-east-1") == {
        "instances_usd_per_hour": {"ml.g5.xlarge": 1.408, "ml.m5.large": 0.115},
        "volumes_usd_per_gb_month": 0.112,
    }
    answer(api, "us-east-1", HOSTING, [])
    answer(api, "us-east-1", VOLUME, [])
    with pytest.raises(SourceError) as caught:
        prices.region_prices(client, "us-east-1")
    assert str(caught.value) == "the Pricing API lists no hosting instance in us-east-1"


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


def test_the_number_of_prices_and_the_regions_that_are_asked(path, capsys):
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
    regions = prices.covered_regions()
    assert {"us-east-1", "eu-west-1", "us-gov-west-1"} <= set(regions)
    assert not [region for region in regions if region.startswith("cn-")]


def product(usage: str, *tiers: tuple[str, str]) -> str:
    dimensions = {
        begin: {"beginRange": begin, "pricePerUnit": {"USD": usd}} for begin, usd in tiers
    }
    terms = {"OnDemand": {"x": {"priceDimensions": dimensions}}}
    return json.dumps({"product": {"attributes": {"usagetype": usage}}, "terms": terms})


ANSWERS = {
    "AmazonCloudWatch": [
        product("EUC1-CW:AlarmMonitorUsage", ("0", "0.1")),
        product("EUC1-CW:CompositeAlarmMonitorUsage", ("0", "0.5")),
        product("EUC1-DataProcessing-Bytes", ("0", "0.63")),
        product("EUC1-S3-Egress-DataProcessing-Bytes", ("0", "0.25")),
    ],
    "AWSLambda": [
        product("EUC1-Request", ("0", "0.0000002")),
        product("EUC1-Request-ARM", ("0", "0.0000001")),
        product("Global-Request", ("0", "0")),
        product("EUC1-Lambda-GB-Second", ("0", "0.0000166667"), ("6000000000", "0.000015")),
    ],
    # Two prices of one row: nothing says which holds.
    "AmazonS3": [
        product("EUC1-TimedStorage-ByteHrs", ("0", "0.0245"), ("51200", "0.0235")),
        product("EUC1-TimedStorage-ByteHrs", ("0", "0.03")),
    ],
}


def test_the_first_tier_of_each_row_takes_the_place_of_another_source(tmp_path, client, api):
    path = tmp_path / "services.json"
    path.write_text(json.dumps(read_table("services.json")), "utf-8")
    for service, answer in ANSWERS.items():
        filters = [{"Type": "TERM_MATCH", "Field": "regionCode", "Value": "eu-west-1"}]
        asked = {"ServiceCode": service, "Filters": filters, "FormatVersion": "aws_v1"}
        api.add_response("get_products", {"PriceList": answer}, asked)
    assert services.main(["--region", "eu-west-1"], path=path, connect=lambda: client) == 0
    written = json.loads(path.read_text("utf-8"))
    [(source, found)] = written["usd"]["eu-west-1"].items()
    assert found == {
        "alarm_metric_month": 0.1, "lambda_gb_second": 0.0000166667,
        "lambda_million_requests": 0.2, "log_gb": 0.63,
    }  # fmt: skip
    assert written["sources"][source]["description"].startswith("AWS Pricing API")
    assert written["usd"]["us-east-1"] == read_table("services.json")["usd"]["us-east-1"]
    assert "sdlc" not in written["sources"]
