"""What a deployment costs: bounds, expectation and each item; unknown is never 0."""

import datetime
import json
from dataclasses import asdict

import pytest

from slipway.cli.review_text import review_rows
from slipway.facts.prices import Price
from slipway.planning.bill import Bill, bill_of
from slipway.planning.cost import (
    HOURS_PER_MONTH,
    VOLUME,
    CostEstimate,
    Fleet,
    HourlyPrice,
    PriceSource,
    UsdPerMonth,
    estimate_cost,
)
from slipway.planning.families import deployment_of
from slipway.planning.plan import DeploymentPlan
from slipway.planning.resolve import resolve
from slipway.planning.review import review
from tests.support.projects import IMAGE_DIGESTS, LOCAL, PRODUCTION, lock_for, model_config

SPRING, AUTUMN = datetime.date(2026, 3, 1), datetime.date(2026, 9, 27)
LIST = PriceSource("2026-09-27", "the list")
BILL = PriceSource("2026-03-01", "the bill")
PRICES = {
    "ml.small": Price(0.5, AUTUMN, LIST.description),
    "ml.middle": Price(1.25, AUTUMN, LIST.description),
    "ml.large": Price(3.0, SPRING, BILL.description),
}
NOTHING = UsdPerMonth(None, None, None)


def fleet(*types: str, counts: tuple[int, int, int] = (1, 2, 4), gb: int | None = None) -> Fleet:
    return Fleet(types, *counts, volume_size_gb=gb)


def cost(*fleets: Fleet, gb_month: float | None = 0.2) -> CostEstimate:
    def price_per_hour(name: str, region: str) -> Price | None:
        return PRICES.get(name) if region == "eu-west-1" else None

    def price_per_gb_month(region: str) -> Price | None:
        return None if gb_month is None else Price(gb_month, SPRING, BILL.description)

    return estimate_cost(
        fleets, "eu-west-1", price_per_hour=price_per_hour, price_per_gb_month=price_per_gb_month
    )


def test_one_type_costs_its_price_for_730_hours():
    assert HOURS_PER_MONTH == 365 * 24 / 12
    assert cost(fleet("ml.small")) == CostEstimate(
        region="eu-west-1",
        # 1, 2 and 4 instances at 0.5 x 730 = 365.
        instances=UsdPerMonth(365.0, 730.0, 1460.0),
        volumes=None,
        hourly=(HourlyPrice("ml.small", 0.5),),
        sources=(LIST,),
        unknown=(),
    )


def test_a_pool_is_bounded_by_its_cheapest_and_its_dearest_type():
    found = cost(fleet("ml.middle", "ml.large", "ml.small"))
    # 1 x 0.5, 2 x the preferred 1.25, 4 x 3: each x 730.
    assert found.instances == UsdPerMonth(365.0, 1825.0, 8760.0)
    assert found.hourly == (HourlyPrice("ml.middle", 1.25),)
    assert found.sources == (LIST, BILL)
    found = cost(fleet("ml.large", "ml.small", counts=(2, 2, 2)))
    assert found.instances == UsdPerMonth(730.0, 4380.0, 4380.0)


def test_variants_add_up_with_bounds_of_their_own():
    found = cost(
        fleet("ml.small", counts=(1, 2, 4)),
        fleet("ml.large", "ml.small", counts=(1, 1, 4)),
    )
    # 365 + 365, 730 + 2190, 1460 + 8760.
    assert found.instances == UsdPerMonth(730.0, 2920.0, 10220.0)
    assert found.hourly == (HourlyPrice("ml.small", 0.5), HourlyPrice("ml.large", 3.0))
    found = cost(fleet("ml.small"), fleet("ml.small", counts=(1, 1, 1)))
    assert found.hourly == (HourlyPrice("ml.small", 0.5),)
    assert found.instances == UsdPerMonth(730.0, 1095.0, 1825.0)


@pytest.mark.parametrize(
    ("types", "expected", "unknown"),
    [
        (("ml.new",), None, ("ml.new",)),
        # The preferred type's price is enough for what is expected, not for the bounds.
        (("ml.small", "ml.new"), 730.0, ("ml.new",)),
        (("ml.new", "ml.small"), None, ("ml.new",)),
        (("ml.new", "ml.small", "ml.newer"), None, ("ml.new", "ml.newer")),
    ],
)
def test_a_figure_that_needs_an_unknown_price_is_unknown(types, expected, unknown):
    found = cost(fleet(*types))
    assert found.instances == UsdPerMonth(None, expected, None)
    assert found.unknown == unknown
    assert found.hourly[0].usd == (0.5 if types[0] == "ml.small" else None)


def test_one_variants_unknown_price_makes_the_sum_unknown():
    found = cost(fleet("ml.small"), fleet("ml.new"), fleet("ml.middle", "ml.new"))
    assert found.instances == NOTHING
    assert found.unknown == ("ml.new",)
    assert found.sources == (LIST,)
    # No instances cost nothing, whatever one would.
    assert cost(fleet("ml.new", counts=(0, 1, 2))).instances == UsdPerMonth(0.0, None, None)
    assert cost(fleet("ml.small", counts=(0, 1, 2))).instances == UsdPerMonth(0.0, 365.0, 730.0)


def test_volumes_are_a_sum_of_their_own():
    found = cost(fleet("ml.small", gb=30), fleet("ml.small", gb=10, counts=(1, 1, 1)))
    # 0.2 x (1, 2, 4) x 30 and 0.2 x 10.
    assert found.volumes == UsdPerMonth(8.0, 14.0, 26.0)
    assert found.instances == UsdPerMonth(730.0, 1095.0, 1825.0)
    assert found.sources == (LIST, BILL)
    # A variant without a known size adds no volume.
    found = cost(fleet("ml.small", gb=30), fleet("ml.small"))
    assert found.volumes == UsdPerMonth(6.0, 12.0, 24.0)
    assert cost(fleet("ml.small")).volumes is None
    # An unknown volume price leaves the instances known.
    found = cost(fleet("ml.small", gb=30), gb_month=None)
    assert found.volumes == NOTHING
    assert found.instances == UsdPerMonth(365.0, 730.0, 1460.0)
    assert found.unknown == (VOLUME,)
    # Nobody asks for the price of volumes that there are not.
    assert cost(fleet("ml.small"), gb_month=None).unknown == ()


def test_the_shipped_prices_are_those_of_the_region():
    shipped = estimate_cost([fleet("ml.g4dn.xlarge", counts=(1, 1, 3))], "us-east-1")
    # 0.7364 x 730 = 537.572, and 3 x that = 1612.716.
    assert shipped.instances == UsdPerMonth(537.57, 537.57, 1612.72)
    assert shipped.sources[0].as_of == "2026-09-27"
    shipped = estimate_cost([fleet("ml.g4dn.xlarge", gb=100)], "eu-west-1")
    # 0.821 x 730, 0.154 x 100.
    assert shipped.instances == UsdPerMonth(599.33, 1198.66, 2397.32)
    assert shipped.volumes == UsdPerMonth(15.4, 30.8, 61.6)
    nowhere = estimate_cost([fleet("ml.g4dn.xlarge", gb=100)], "eu-west-3")
    assert nowhere.instances == nowhere.volumes == NOTHING
    assert nowhere.unknown == ("ml.g4dn.xlarge", VOLUME)
    assert nowhere.sources == ()


def test_an_estimate_can_be_printed_as_json():
    printed = json.loads(json.dumps(asdict(cost(fleet("ml.small", "ml.new", gb=30)))))
    assert printed["instances"] == {"minimum": None, "expected": 730.0, "maximum": None}
    assert printed["sources"] == [asdict(LIST), asdict(BILL)]
    assert printed["unknown"] == ["ml.new"]


DAY = datetime.date(2026, 11, 1)
FLEET_SCALING = {"min_instance_count": 1, "max_instance_count": 4}


def plan(environment=LOCAL, **sections) -> DeploymentPlan:
    config = model_config(**sections)
    return resolve(deployment_of(config, environment), lock_for(config), IMAGE_DIGESTS)


def quantities(bill: Bill) -> dict[str, float | None]:
    return {each.name: each.quantity for each in bill.items}


def test_the_total_is_instances_alarms_and_files_and_no_use():
    found = bill_of(
        plan(autoscaling=FLEET_SCALING | {"target_invocations_per_instance_per_minute": 60})
    )
    # One to four ml.g4dn.xlarge, and two at creation.
    assert found.usd_per_hour == UsdPerMonth(0.7364, 1.4728, 2.9456)
    alarms, files = found.items
    assert (alarms.name, alarms.usd_per_month) == ("alarms", round(0.1 * (alarms.quantity or 0), 4))
    assert files.usd_per_month == pytest.approx(0.023 * (files.quantity or 0), abs=1e-4)
    fixed = (alarms.usd_per_month or 0) + (files.usd_per_month or 0)
    assert found.total.minimum == pytest.approx(730 * 0.7364 + fixed, abs=0.01)
    assert found.total.maximum == pytest.approx(730 * 2.9456 + fixed, abs=0.01)
    names = {each.name for each in found.by_use}
    assert {"logs, written", "logs, kept", "Lambda, at deploys", "traffic out of AWS"} <= names
    assert all(each.usd_per_month is None for each in found.by_use)


def test_each_metric_of_an_alarm_is_billed():
    by_minutes = {"target_invocations_per_instance_per_minute": 60}
    by_seconds = {"target_concurrent_requests_per_instance": 4}
    # Four metrics of the error rate, and the latency.
    assert quantities(bill_of(plan()))["alarms"] == 5
    # Two alarms of target tracking.
    assert quantities(bill_of(plan(autoscaling=FLEET_SCALING | by_minutes)))["alarms"] == 7
    # Two metrics of the alarm at the maximum.
    watched = plan(autoscaling=FLEET_SCALING | by_minutes, alarms={"at_max_capacity": True})
    assert quantities(bill_of(watched))["alarms"] == 9
    found = quantities(bill_of(plan(autoscaling=FLEET_SCALING | by_seconds)))
    assert (found["alarms"], found["alarms by 10 s"]) == (5, 2)


def test_a_review_names_what_an_alarm_and_a_dashboard_add_to_the_bill():
    scaling = {"autoscaling": FLEET_SCALING | {"target_invocations_per_instance_per_minute": 60}}
    before = plan(**scaling, endpoint={"dashboard": False})
    after = plan(**scaling, alarms={"at_max_capacity": True})
    found = review(before, after)
    assert found is not None
    assert (found.cost_before, found.cost_after) == (bill_of(before).total, bill_of(after).total)
    rows = [value for name, value in review_rows(found) if name in ("cost", "bill")]
    assert rows == [
        "1,075.84 expected -> 1,076.04 expected USD a month",
        "alarms: 0.70 USD (7 metrics) -> 0.90 USD (9 metrics)",
        "dashboard beyond the first 3 of the account: none -> 3.00 USD",
    ]


def test_an_unknown_price_makes_the_total_unknown():
    found = bill_of(plan(PRODUCTION))
    # eu-west-1 has a price of the instance and of alarms, and none of files.
    assert found.cost.instances.expected is not None
    alarms, files = found.items
    assert (alarms.usd_per_month, files.usd_each, files.usd_per_month) == (0.5, None, None)
    assert found.total == UsdPerMonth(None, None, None)
    assert found.known == pytest.approx(found.cost.instances.expected + 0.5)
    known = bill_of(plan(PRODUCTION), lambda name, region: Price(1.0, DAY, f"{name} in {region}"))
    assert known.total.expected is not None
    assert ("2026-11-01", "alarm_metric_month in eu-west-1") in [
        (each.as_of, each.description) for each in known.sources
    ]
