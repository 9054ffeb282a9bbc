"""`slipway simulate`: a config's scaling under a traffic, and what is refused."""

import re
import time

import pytest

from tests.support.projects import config_text, write_project

SCALED = config_text("tiny") + (
    "\nautoscaling:\n  min_instance_count: 1\n  max_instance_count: 4\n"
    "  target_invocations_per_instance_per_minute: 300\n"
)
GPU = config_text(
    "gpu", ("instance_count: 2\n", "instance_count: 2\n  shadow: {sampling_percent: 50}\n")
) + (
    "\nautoscaling:\n  min_instance_count: 1\n  max_instance_count: 4\n"
    "  target_gpu_utilization_percent: 60\n"
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


@pytest.fixture
def run(tmp_path, monkeypatch, slipway_command):
    """Simulates a model under a traffic."""
    models = {"tiny": SCALED, "gpu": GPU, "queued": ASYNC, "asleep": ASLEEP}
    monkeypatch.chdir(write_project(tmp_path, models | {"fixed": config_text("fixed")}))
    return slipway_command.of("simulate", "--service-time", "100", "--env", "local", "--traffic")


def test_a_fleet_grows_with_its_traffic(run):
    text = run.done("constant:rate=16,hours=2", "tiny")
    rows = dict(re.split("  +", line, maxsplit=1) for line in text.splitlines())
    assert rows["scaling"] == "1 to 4 at 300 invocations a minute"
    assert rows["requests"] == "115,200"
    # 16 a second are 960 a minute: four instances of two, after three minutes and five more.
    assert rows["instances"].startswith("2 to 4, 4.0 at the mean")
    changed = ("--start-seconds", "0", "--target", "600")
    found = run.document("constant:rate=16,hours=2", "tiny", *changed)
    # Two instances hold 480 each.
    assert (found["fewest_instances"], found["most_instances"]) == (2, 2)
    assert found["usd"] == pytest.approx(2 * 2 * 0.7364, abs=0.01)
    assert found["usd_per_month"] == pytest.approx(730 * 2 * 0.7364, abs=1)


def test_the_search_finds_the_cheapest_that_holds_the_p99(run):
    run = run.of("burst:base=4,peak=16,every=900,length=450,hours=0.5", "tiny", "--p99")
    loose, tight = (run.document(p99)["search"]["cheapest"]["found"] for p99 in ("1000", "600"))
    assert loose["p99_seconds"] <= 1.0
    assert tight["p99_seconds"] <= 0.6
    assert tight["instance_hours"] >= loose["instance_hours"]
    # An exponential time of 100 ms has a p99 of 460 ms alone.
    assert "settings holds a p99 of 400 ms with that service time" in run.done("400")


def test_queues_wake_fleets_and_sleeping_endpoints_fail_meanwhile(run):
    found = run.document("constant:rate=2,hours=1", "queued")
    assert (found["requests"], found["refused"], found["timed_out"]) == (7200, 0, 0)
    traffic = "burst:base=0,peak=6,every=7200,length=1200,hours=2"
    found = run.document(traffic, "asleep", "--start-seconds", "120")
    # A minute until the alarm, and two until the copy serves.
    assert found["refused"] == pytest.approx(6 * 180)
    assert (found["fewest_instances"], found["most_instances"]) == (0, 1)


def test_plots_are_in_one_page(run, tmp_path):
    run.done("daily:low=1,high=9", "tiny", "--html", "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert page.count("<svg") == 3
    assert "<script" not in page


def test_what_is_not_simulated_is_refused_by_name(run):
    errors = run.refused("constant:rate=1", "gpu")
    assert "autoscaling.target_gpu_utilization_percent: not simulated: how busy a GPU is" in errors
    assert "endpoint.shadow: not simulated: a shadow variant [SW752]" in errors
    for option in (("--target", "5"), ("--p99", "100")):
        errors = run.refused("constant:rate=1", "fixed", *option)
        assert "a fixed number of instances has no target" in errors


def test_all_wrong_options_are_reported(run, tmp_path):
    wrong = ("--service-time", "0,-1", "--target", "0", "--begin", "noon")
    assert run.refused("constant:rate=1", "tiny", *wrong).startswith("3 problems")
    errors = run.refused("constant:rate=1", "queued", "--concurrency", "5")
    assert "more than the 4 of `max_concurrent_invocations_per_instance`" in errors
    (tmp_path / "t.csv").write_text("0\nx\n-1\n", encoding="utf-8")
    errors = run.refused("t.csv", "tiny")
    assert "t.csv:2:1: 'x' is no time [SW751]" in errors
    assert "t.csv:3:1: the time -1 is negative [SW751]" in errors


@pytest.mark.size("all")
def test_a_day_of_a_thousand_requests_a_second_takes_less_than_ten_seconds(run):
    before = time.process_time()
    run.done("constant:rate=1000", "tiny")
    assert time.process_time() - before < 10
