"""Refreshing the services of a bill from the Pricing API: answers of its form."""

import json

from slipway.facts.tables import read_table
from tools.refresh_facts import services


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
    [(source, prices)] = written["usd"]["eu-west-1"].items()
    assert prices == {
        "alarm_metric_month": 0.1, "lambda_gb_second": 0.0000166667,
        "lambda_million_requests": 0.2, "log_gb": 0.63,
    }  # fmt: skip
    assert written["sources"][source]["description"].startswith("AWS Pricing API")
    assert written["usd"]["us-east-1"] == read_table("services.json")["usd"]["us-east-1"]
    assert "sdlc" not in written["sources"]
