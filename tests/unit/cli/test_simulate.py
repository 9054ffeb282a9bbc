"""`slipway simulate`: a config's scaling under a traffic, and what is refused."""

import json
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.support.projects import config_text, write_project

SCALED = config_text("tiny") + (
    "\nautoscaling:\n  min_instance_count: 1\n  max_instance_count: 4\n"
    "  target_invocations_per_instance_per_minute: 300\n"
)
GPU = (
    SCALED.replace("tiny", "gpu")
    .replace("samples/gpu", "samples/tiny")
    .replace(
        "target_invocations_per_instance_per_minute: 300", "target_gpu_utilization_percent: 60"
    )
    .replace("instance_count: 2\n", "instance_count: 2\n  shadow: {sampling_percent: 50}\n")
)
ASYNC = config_text(
    "queued",
    (
        "instance_count: 2",
        "instance_count: 1\n  mode: async\n  async_inference:\n    input: s3://my-in/\n"
        "    output: s3://my-out/\n    failure_output: s3://my-failed/\n"
        "    max_concurrent_invocations_per_instance: 4",
    ),
) + (
    "\nautoscaling:\n  min_instance_count: 0\n  max_instance_count: 4\n"
    "  target_backlog_per_instance: 5\n"
)
ASLEEP = config_text(
    "asleep",
    (
        "  instance_count: 2\n",
        "  mode: scale_to_zero\n  scale_to_zero:\n    max_copies: 2\n"
        "    target_concurrent_requests_per_copy: 5\n",
    ),
)
ARGUMENTS = ("--service-time", "100", "--env", "local")


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = {
        "tiny": SCALED,
        "gpu": GPU,
        "queued": ASYNC,
        "asleep": ASLEEP,
        "fixed": config_text("fixed"),
    }
    monkeypatch.chdir(write_project(tmp_path, models))


def test_a_fleet_grows_with_its_traffic(slipway_command: Any):
    code, text, _ = slipway_command(
        "simulate", "tiny", "--traffic", "constant:rate=16,hours=2", *ARGUMENTS
    )
    rows = dict(line.split("  ", 1) for line in text.splitlines())
    rows = {name: value.strip() for name, value in rows.items()}
    assert code == 0
    assert rows["scaling"] == "1 to 4 at 300 invocations a minute"
    assert rows["requests"] == "115,200"
    # 16 a second are 960 a minute: four instances of two, after three minutes and five more.
    assert rows["instances"].startswith("2 to 4, 4.0 at the mean")
    code, text, _ = slipway_command(
        "simulate", "tiny", "--traffic", "constant:rate=16,hours=2", *ARGUMENTS, "--json",
        "--start-seconds", "0", "--target", "600",
    )  # fmt: skip
    found = json.loads(text)
    # Two instances hold 480 each.
    assert (code, found["fewest_instances"], found["most_instances"]) == (0, 2, 2)
    assert found["usd"] == pytest.approx(2 * 2 * 0.7364, abs=0.01)
    assert found["usd_per_month"] == pytest.approx(730 * 2 * 0.7364, abs=1)


def test_the_search_finds_the_cheapest_that_holds_the_p99(slipway_command: Any):
    arguments = ("simulate", "tiny", "--traffic", "burst:base=4,peak=16,every=900,length=450,"
                 "hours=0.5", *ARGUMENTS, "--json", "--p99")  # fmt: skip
    _, text, _ = slipway_command(*arguments, "1000")
    loose = json.loads(text)["search"]["cheapest"]
    _, text, _ = slipway_command(*arguments, "600")
    tight = json.loads(text)["search"]["cheapest"]
    assert loose["found"]["p99_seconds"] <= 1.0
    assert tight["found"]["p99_seconds"] <= 0.6
    assert tight["found"]["instance_hours"] >= loose["found"]["instance_hours"]
    # An exponential time of 100 ms has a p99 of 460 ms alone.
    code, text, _ = slipway_command(*arguments[:-2], "--p99", "400")
    assert code == 0
    assert "settings holds a p99 of 400 ms with that service time" in text


def test_an_asynchronous_queue_wakes_its_fleet(slipway_command: Any):
    code, text, _ = slipway_command(
        "simulate", "queued", "--traffic", "constant:rate=2,hours=1", *ARGUMENTS, "--json"
    )
    found = json.loads(text)
    assert (code, found["refused"], found["timed_out"]) == (0, 0, 0)
    assert found["requests"] == 7200


def test_requests_fail_until_a_copy_is_awake(slipway_command: Any):
    traffic = "burst:base=0,peak=6,every=7200,length=1200,hours=2"
    code, text, _ = slipway_command(
        "simulate", "asleep", "--traffic", traffic, *ARGUMENTS, "--start-seconds", "120", "--json"
    )
    found = json.loads(text)
    # A minute until the alarm, and two until the copy serves.
    assert (code, found["refused"]) == (0, pytest.approx(6 * 180))
    assert (found["fewest_instances"], found["most_instances"]) == (0, 1)


def test_plots_are_in_one_page(slipway_command: Any, tmp_path: Path):
    class Page(HTMLParser):
        found: ClassVar[list[str]] = []

        def handle_starttag(self, tag: str, attributes: Any) -> None:
            self.found.append(tag)

    code, _, _ = slipway_command(
        "simulate", "tiny", "--traffic", "daily:low=1,high=9", *ARGUMENTS, "--html", "page.html"
    )
    page = Page()
    page.feed((tmp_path / "page.html").read_text("utf-8"))
    assert code == 0
    assert page.found.count("svg") == 3
    assert "script" not in page.found


def test_what_is_not_simulated_is_refused_by_name(slipway_command: Any):
    code, _, errors = slipway_command("simulate", "gpu", "--traffic", "constant:rate=1", *ARGUMENTS)
    assert code == 1
    assert "autoscaling.target_gpu_utilization_percent: not simulated: how busy a GPU is" in errors
    assert "endpoint.shadow: not simulated: a shadow variant [SW752]" in errors
    for option in (("--target", "5"), ("--p99", "100")):
        code, _, errors = slipway_command(
            "simulate", "fixed", "--traffic", "constant:rate=1", *ARGUMENTS, *option
        )
        assert (code, "a fixed number of instances has no target" in errors) == (1, True)


def test_all_wrong_options_are_reported(slipway_command: Any, tmp_path: Path):
    code, _, errors = slipway_command(
        "simulate", "tiny", "--traffic", "constant:rate=1", "--service-time", "0,-1", "--target",
        "0", "--begin", "noon",
    )  # fmt: skip
    assert code == 1
    assert errors.startswith("3 problems")
    code, _, errors = slipway_command(
        "simulate", "queued", "--traffic", "constant:rate=1", *ARGUMENTS, "--concurrency", "5"
    )
    assert "more than the 4 of `max_concurrent_invocations_per_instance`" in errors
    (tmp_path / "t.csv").write_text("0\nx\n-1\n", encoding="utf-8")
    code, _, errors = slipway_command("simulate", "tiny", "--traffic", "t.csv", *ARGUMENTS)
    assert code == 1
    assert "t.csv:2:1: 'x' is no time [SW751]" in errors
    assert "t.csv:3:1: the time -1 is negative [SW751]" in errors


@pytest.mark.size("all")
def test_a_day_of_a_thousand_requests_a_second_takes_less_than_ten_seconds(slipway_command: Any):
    before = time.process_time()
    code, _, _ = slipway_command("simulate", "tiny", "--traffic", "constant:rate=1000", *ARGUMENTS)
    assert code == 0
    assert time.process_time() - before < 10
