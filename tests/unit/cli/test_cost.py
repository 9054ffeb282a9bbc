"""`slipway cost`: the bill of each model, and the row of a plan that says what it costs."""

import pytest

from slipway.cli.cost import describe_cost
from slipway.planning.cost import VOLUME, CostEstimate, HourlyPrice, PriceSource, UsdPerMonth
from tests.support.projects import config_text, write_project

WRONG = config_text("wrong", ("instance_count: 2", "instance_count: none"))


def test_the_bill_names_what_is_unknown_and_its_sources(tmp_path, monkeypatch, slipway_command):
    monkeypatch.chdir(write_project(tmp_path, {"tiny": config_text("tiny")}, published=["tiny"]))
    text = slipway_command.done("cost")
    rows = [line.strip().partition("  ") for line in text.splitlines()]
    lines = {name: value.strip() for name, _, value in rows}
    # What runs on the laptop is no bill.
    assert text.splitlines()[0] == "tiny in production, eu-west-1"
    assert lines["an hour"] == "1.64 USD (ml.g4dn.xlarge 0.821 USD)"
    assert lines["a month"] == "1,198.66 USD"
    assert lines["alarms"] == "0.5 USD a month (5 metrics at 0.1 USD)"
    assert lines["artifact in S3"].startswith("unknown a month (")
    assert lines["total a month"] == "unknown"
    assert lines["logs, written"] == "by use: 0.57 USD per GB"
    assert {"2023-12-31", "2026-10-02"} <= set(lines)
    [bill] = slipway_command.document("cost", "tiny", "--env", "local")["bills"]
    assert (bill["environment"], bill["total"]["expected"]) == ("local", 1075.64)


def test_the_problems_of_all_models_are_reported(tmp_path, monkeypatch, slipway_command):
    models = {"wrong": WRONG, "worse": WRONG.replace("wrong", "worse")}
    monkeypatch.chdir(write_project(tmp_path, models))
    errors = slipway_command.refused("cost")
    assert all(f"model_configs/{name}.yaml:" in errors for name in models)


LIST = PriceSource("2026-09-27", "the list")
BILL = PriceSource("2023-12-31", "the bill")
LEFT_OUT = "without requests, traffic and storage)"
UNKNOWN = UsdPerMonth(None, None, None)
T4, A10 = HourlyPrice("ml.g4dn.xlarge", 0.736), HourlyPrice("ml.g5.xlarge", 1.408)


def row(
    instances: UsdPerMonth,
    *,
    volumes: UsdPerMonth | None = None,
    hourly: tuple[HourlyPrice, ...] = (T4,),
    sources: tuple[PriceSource, ...] = (LIST,),
    unknown: tuple[str, ...] = (),
) -> str:
    return describe_cost(CostEstimate("eu-west-3", instances, volumes, hourly, sources, unknown))


def test_a_range_has_what_is_expected_and_a_fixed_count_is_one_number():
    figures = UsdPerMonth(537.28, 537.28, 2149.12)
    assert row(figures) == (
        "537 to 2,149 USD a month, 537 expected (0.736 USD/h each, prices of 2026-09-27; "
        f"{LEFT_OUT}"
    )
    fixed = UsdPerMonth(1074.56, 1074.56, 1074.56)
    assert row(fixed) == (f"1,075 USD a month (0.736 USD/h each, prices of 2026-09-27; {LEFT_OUT}")
    assert row(figures, volumes=UsdPerMonth(0.46, 4.62, 61.6)) == (
        "537 to 2,149 USD a month, 537 expected, and for volumes 0.46 to 62, 5 expected "
        "(0.736 USD/h each, prices of 2026-09-27; without requests and traffic)"
    )
    assert "537 expected, and for volumes 15 (" in row(
        figures, volumes=UsdPerMonth(15.4, 15.4, 15.4)
    )


def test_prices_of_several_preferred_types_and_days():
    figures = UsdPerMonth(1565.12, 1565.12, 1565.12)
    assert row(figures, hourly=(T4, A10), sources=(LIST, BILL)) == (
        "1,565 USD a month (ml.g4dn.xlarge 0.736 and ml.g5.xlarge 1.408 USD/h each, prices of "
        f"2023-12-31 to 2026-09-27; {LEFT_OUT}"
    )
    same = HourlyPrice("ml.twin", 0.736)
    assert "(0.736 USD/h each, prices" in row(figures, hourly=(T4, same))


def test_what_is_unknown_is_named():
    figures = UsdPerMonth(537.28, 537.28, 537.28)
    assert row(figures, volumes=UNKNOWN, unknown=(VOLUME,)) == (
        "537 USD a month (0.736 USD/h each, prices of 2026-09-27; without requests and traffic, "
        "and without volumes: no published price of EBS volumes in eu-west-3)"
    )
    nothing = {"hourly": (HourlyPrice("ml.x", None),), "sources": ()}
    assert row(UNKNOWN, **nothing, unknown=("ml.x",)) == (
        "unknown: no published price of ml.x in eu-west-3"
    )
    assert row(UNKNOWN, **nothing, unknown=("ml.x", "ml.y", VOLUME)) == (
        "unknown: no published price of ml.x and ml.y in eu-west-3"
    )


@pytest.mark.parametrize(
    ("figures", "start", "priced"),
    [
        (UsdPerMonth(None, 537.28, None), "537 USD a month expected", True),
        (UsdPerMonth(0.0, None, None), "0 USD a month at least", False),
        (UsdPerMonth(0.0, 537.28, None), "0 USD a month at least, 537 expected", True),
    ],
)
def test_part_is_known(figures, start, priced):
    found = row(
        figures,
        hourly=(T4,) if priced else (HourlyPrice("ml.x", None),),
        sources=(LIST,) if priced else (),
        unknown=("ml.x",),
    )
    end = f"0.736 USD/h each, prices of 2026-09-27; {LEFT_OUT}" if priced else LEFT_OUT
    assert found == f"{start}; the rest is unknown: no published price of ml.x in eu-west-3 ({end}"
