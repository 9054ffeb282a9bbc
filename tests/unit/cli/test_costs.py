"""The row of a plan that says what it costs."""

import pytest

from slipway.cli.cost import describe_cost
from slipway.planning.cost import VOLUME, CostEstimate, HourlyPrice, PriceSource, UsdPerMonth

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
