"""What all trials under load have in common, and the load driver alone."""

import pytest

from benchmarks.driver import driver_as_json, driver_as_list, measure_driver
from benchmarks.load import LoadResult
from benchmarks.summary import latencies_of, summarize_cells
from benchmarks.trials import Trial


def load(*latencies: float) -> LoadResult:
    return LoadResult((latencies,), (sum(latencies),), ((0, "{}", 4),), 0.0004, 1.0)


def test_latencies_are_those_of_all_requests():
    found = latencies_of([0.1 * number for number in range(1, 102)])
    assert (found.count, found.shortest) == (101, 0.1)
    assert (found.average, found.longest) == pytest.approx((5.1, 10.1))
    assert (found.p50, found.p95, found.p99) == pytest.approx((5.1, 9.6, 10.0))


def test_a_cell_has_the_median_of_its_trials_and_the_latencies_of_all():
    trials = [
        Trial("a", 1, load(1.0, 1.0)),
        Trial("b", 1, load(7.0)),
        Trial("a", 2, load(4.0, 4.0)),
        Trial("a", 3, load(0.5)),
    ]
    cells = summarize_cells(["b", "c", "a"], trials)
    assert list(cells) == ["b", "a"]
    found = cells["a"]
    assert found.throughputs == [1.0, 0.25, 2.0]
    assert [each.p95 for each in found.trial_latencies] == [1.0, 4.0, 0.5]
    assert found.requests_per_second == 1.0
    assert (found.latencies.count, found.latencies.shortest) == (5, 0.5)
    document = found.as_json(trials, "sentences_per_second", ("p50", "longest"))
    assert document["sentences_per_second"] == 1.0
    assert (document["p50_milliseconds"], document["longest_milliseconds"]) == (1000, 4000)
    assert [(trial["round"], trial["order"]) for trial in document["trials"]] == [
        (1, 1),
        (2, 3),
        (3, 4),
    ]
    assert document["trials"][1] == {
        "round": 2,
        "order": 3,
        "sentences_per_second": 0.25,
        "requests": 2,
        "p50_milliseconds": 4000,
        "longest_milliseconds": 4000,
    }


def test_the_driver_alone_is_stated_with_its_processor_time():
    driver = {1: load(0.0002, 0.0002), 8: load(0.0004)}
    assert driver_as_list(driver, "p99") == (
        "- 1 client: p50 0.20 ms, p99 0.20 ms, 0.10 ms of processor time a request\n"
        "- 8 clients: p50 0.40 ms, p99 0.40 ms, 0.10 ms of processor time a request"
    )
    assert driver_as_json(driver, ("p95",))[0] == {
        "clients": 1,
        "requests": 2,
        "p95_milliseconds": 0.2,
        "requests_per_second": 5000.0,
        "processor_milliseconds_per_request": 0.1,
    }


@pytest.mark.size("all")
def test_the_driver_is_measured_with_each_number_of_clients(tmp_path):
    found = measure_driver(["a", "b"], (1, 8), 0.01, tmp_path / "log")
    assert list(found) == [1, 8]
    assert all(load.requests_per_second > 50 for load in found.values())
    assert {answer for load in found.values() for _, answer, _ in load.answers} == {"{}"}
