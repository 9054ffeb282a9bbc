"""`slipway cost`: the bill of each model, and the row of a plan that says what it costs."""

import json
from pathlib import Path
from typing import Any

import pytest

from slipway.cli.cost import describe_cost
from slipway.planning.cost import VOLUME, CostEstimate, HourlyPrice, PriceSource, UsdPerMonth
from tests.support.projects import config_text, write_project

WRONG = config_text("wrong", ("instance_count: 2", "instance_count: none"))


def test_the_bill_names_what_is_unknown_and_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slipway_command: Any
):
    monkeypatch.chdir(write_project(tmp_path, {"tiny": config_text("tiny")}, published=["tiny"]))
    code, text, _ = slipway_command("cost")
    rows = [line.strip().partition("  ") for line in text.splitlines()]
    lines = {name: value.strip() for name, _, value in rows}
    # What runs on the laptop is no bill.
    assert (code, text.splitlines()[0]) == (0, "tiny in production, eu-west-1")
    assert lines["an hour"] == "1.64 USD (ml.g4dn.xlarge 0.821 USD)"
    assert lines["a month"] == "1,198.66 USD"
    assert lines["alarms"] == "0.5 USD a month (5 metrics at 0.1 USD)"
    assert lines["artifact in S3"].startswith("unknown a month (")
    assert lines["total a month"] == "unknown"
    assert lines["logs, written"] == "by use: 0.57 USD per GB"
    assert {"2023-12-31", "2026-10-02"} <= set(lines)
    code, text, _ = slipway_command("cost", "tiny", "--env", "local", "--json")
    [bill] = json.loads(text)["bills"]
    assert (code, bill["environment"], bill["total"]["expected"]) == (0, "local", 1075.64)


def test_the_problems_of_all_models_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slipway_command: Any
):
    models = {"wrong": WRONG, "worse": WRONG.replace("wrong", "worse")}
    monkeypatch.chdir(write_project(tmp_path, models))
    code, _, errors = slipway_command("cost")
    assert code == 1
    assert "model_configs/wrong.yaml:" in errors
    assert "model_configs/worse.yaml:" in errors


LIST = PriceSource("2026-09-27", "the list")
BILL = PriceSource("2023-12-31", "the bill")
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


def test_a_range_with_what_is_expected():
    assert row(UsdPerMonth(537.28, 537.28, 2149.12)) == (
        "537 to 2,149 USD a month, 537 expected (0.736 USD/h each, prices of 2026-09-27; without "
        "requests, traffic and storage)"
    )


def test_a_fixed_count_of_one_type_is_one_number():
    assert row(UsdPerMonth(1074.56, 1074.56, 1074.56)) == (
        "1,075 USD a month (0.736 USD/h each, prices of 2026-09-27; without requests, traffic and "
        "storage)"
    )


def test_volumes_are_said_apart():
    figures = UsdPerMonth(537.28, 537.28, 2149.12)
    assert row(figures, volumes=UsdPerMonth(0.46, 4.62, 61.6)) == (
        "537 to 2,149 USD a month, 537 expected, and for volumes 0.46 to 62, 5 expected "
        "(0.736 USD/h each, prices of 2026-09-27; without requests and traffic)"
    )
    assert "537 expected, and for volumes 15 (" in row(
        figures, volumes=UsdPerMonth(15.4, 15.4, 15.4)
    )


def test_volumes_of_unknown_price_are_named_as_left_out():
    figures = UsdPerMonth(537.28, 537.28, 537.28)
    assert row(figures, volumes=UsdPerMonth(None, None, None), unknown=(VOLUME,)) == (
        "537 USD a month (0.736 USD/h each, prices of 2026-09-27; without requests and traffic, "
        "and without volumes: no published price of EBS volumes in eu-west-3)"
    )


def test_prices_of_several_preferred_types_and_days():
    figures = UsdPerMonth(1565.12, 1565.12, 1565.12)
    assert row(figures, hourly=(T4, A10), sources=(LIST, BILL)) == (
        "1,565 USD a month (ml.g4dn.xlarge 0.736 and ml.g5.xlarge 1.408 USD/h each, prices of "
        "2023-12-31 to 2026-09-27; without requests, traffic and storage)"
    )
    same = HourlyPrice("ml.twin", 0.736)
    assert "(0.736 USD/h each, prices" in row(figures, hourly=(T4, same))


def test_nothing_is_known():
    nothing = UsdPerMonth(None, None, None)
    unpriced = HourlyPrice("ml.x", None)
    assert row(nothing, hourly=(unpriced,), sources=(), unknown=("ml.x",)) == (
        "unknown: no published price of ml.x in eu-west-3"
    )
    assert row(nothing, hourly=(unpriced,), sources=(), unknown=("ml.x", "ml.y", VOLUME)) == (
        "unknown: no published price of ml.x and ml.y in eu-west-3"
    )


@pytest.mark.parametrize(
    ("figures", "hourly", "sources", "start", "end"),
    [
        (
            UsdPerMonth(None, 537.28, None), (T4,), (LIST,),
            "537 USD a month expected",
            "(0.736 USD/h each, prices of 2026-09-27; without requests, traffic and storage)",
        ),
        (
            UsdPerMonth(0.0, None, None), (HourlyPrice("ml.x", None),), (),
            "0 USD a month at least", "(without requests, traffic and storage)",
        ),
        (
            UsdPerMonth(0.0, 537.28, None), (T4,), (LIST,),
            "0 USD a month at least, 537 expected",
            "(0.736 USD/h each, prices of 2026-09-27; without requests, traffic and storage)",
        ),
    ],
)  # fmt: skip
def test_part_is_known(figures, hourly, sources, start, end):
    assert row(figures, hourly=hourly, sources=sources, unknown=("ml.x",)) == (
        f"{start}; the rest is unknown: no published price of ml.x in eu-west-3 {end}"
    )
