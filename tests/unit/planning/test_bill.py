"""What a plan costs item by item, computed by hand; an unknown price is never 0."""

import datetime

import pytest

from slipway.cli.review_text import review_rows
from slipway.facts.prices import Price
from slipway.planning.bill import Bill, bill_of
from slipway.planning.cost import UsdPerMonth
from slipway.planning.families import deployment_of
from slipway.planning.plan import DeploymentPlan
from slipway.planning.resolve import resolve
from slipway.planning.review import review
from tests.support.projects import IMAGE_DIGESTS, LOCAL, PRODUCTION, lock_for, model_config

DAY = datetime.date(2026, 11, 1)
SCALING = {"min_instance_count": 1, "max_instance_count": 4}


def plan(environment=LOCAL, **sections) -> DeploymentPlan:
    config = model_config(**sections)
    return resolve(deployment_of(config, environment), lock_for(config), IMAGE_DIGESTS)


def quantities(bill: Bill) -> dict[str, float | None]:
    return {each.name: each.quantity for each in bill.items}


def test_the_total_is_instances_alarms_and_files_and_no_use():
    found = bill_of(plan(autoscaling=SCALING | {"target_invocations_per_instance_per_minute": 60}))
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
    assert quantities(bill_of(plan(autoscaling=SCALING | by_minutes)))["alarms"] == 7
    # Two metrics of the alarm at the maximum.
    watched = plan(autoscaling=SCALING | by_minutes, alarms={"at_max_capacity": True})
    assert quantities(bill_of(watched))["alarms"] == 9
    found = quantities(bill_of(plan(autoscaling=SCALING | by_seconds)))
    assert (found["alarms"], found["alarms by 10 s"]) == (5, 2)


def test_a_review_names_what_an_alarm_and_a_dashboard_add_to_the_bill():
    scaling = {"autoscaling": SCALING | {"target_invocations_per_instance_per_minute": 60}}
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
