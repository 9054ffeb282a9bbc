"""The table of `slipway list`, as its page shows it."""

from slipway.cli.list_ import as_table
from slipway.deployed.traffic import Traffic
from slipway.operations.fleet import IN_SERVICE, FleetRow
from tests.support.pages import ROOT

ROWS = [
    FleetRow(
        "gpt2-autocomplete", "production", IN_SERVICE, serves_files=True,
        instances="2 x ml.g4dn.xlarge", traffic=Traffic(48_210, 3, 14.2, 40.9),
        usd_per_month=1074.56,
    ),
    FleetRow(
        "flan-t5-xxl", "production", IN_SERVICE, serves_files=False,
        instances="1 x ml.g5.12xlarge", traffic=Traffic(0, 0, None, None), usd_per_month=5175.7,
        idle_days=9,
    ),
    FleetRow(
        "old-ranker", "production", IN_SERVICE, instances="1 x ml.g4dn.xlarge",
        traffic=Traffic(12, 0, 20.0, 33.0), usd_per_month=537.28, has_file=False,
    ),
]  # fmt: skip


def test_the_page_shows_the_table() -> None:
    page = (ROOT / "docs" / "commands.md").read_text("utf-8")
    assert f"```text\n{as_table(ROWS)}\n```" in page


def test_a_price_that_nobody_knows_is_named() -> None:
    row = FleetRow("chat", "eu", IN_SERVICE, usd_known_per_month=1198.7)
    assert as_table([row]).endswith("in service  1,199 + unknown")


def test_columns_without_a_value_are_left_out() -> None:
    assert as_table([FleetRow("later", "local", "not deployed")]) == (
        "model  environment  state\nlater  local        not deployed"
    )
