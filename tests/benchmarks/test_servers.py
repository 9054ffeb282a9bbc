"""What the benchmarks of servers share: the variables, the answers that must agree, the figures."""

import operator

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.estimates import latencies_of, loads_as_json
from benchmarks.load import LoadResult, LoadSpecification
from benchmarks.servers import (
    Answers,
    ServerPool,
    driver_as_list,
    measure_driver,
    server_variables,
    start_container,
)
from benchmarks.trials import Trial


def load(*latencies):
    return LoadResult((latencies,), (sum(latencies),), ((0, "{}", 4),), 0.0004, 1.0)


def test_no_setting_of_the_users_reaches_the_servers():
    theirs = {"HOME": "/home/somebody", "OMP_NUM_THREADS": "1", "SLIPWAY_LOG_LEVEL": "DEBUG"}
    assert server_variables(theirs) == {"HOME": "/home/somebody"}


def test_a_server_that_does_not_start_is_reported_with_its_last_words(tmp_path):
    settings = {"SM_MODEL_DIR": str(tmp_path / "nothing"), "SAGEMAKER_BIND_TO_PORT": "0"}
    with pytest.raises(BenchmarkError, match="nothing is not a directory: no model data"):
        start_container(("-m", "containers.tensorrt", "serve"), tmp_path / "log", settings)


def test_a_request_that_fails_ends_with_the_servers_last_words():
    class Failing:
        port = 1

        def recent_output(self):
            return "its last words"

        def stop(self):
            stopped.append(self)

    stopped = []
    said = []
    with ServerPool(lambda _key: Failing(), said.append) as pool:
        for _ in range(2):
            with pytest.raises(BenchmarkError) as caught:
                pool.drive("key", "cell x2", LoadSpecification(("a",), 2))
            assert str(caught.value).startswith("cell x2: a request failed: ConnectionRefused")
            assert str(caught.value).endswith("\nits last words")
    assert said == ["starting key"]
    assert len(stopped) == 1


def test_the_first_answer_to_a_request_is_the_right_one():
    answers = Answers(lambda _index, text: text.lower(), operator.eq)
    answers.compare("first", [(0, "A", 1), (1, "b", 1)])
    answers.compare("second", [(0, "a", 5)])
    assert answers.compared == 7
    assert answers.same([(0, "A", 2), (1, "c", 3), (1, "B", 4)]) == 6
    with pytest.raises(BenchmarkError) as caught:
        answers.compare("third", [(1, "c", 1)])
    assert str(caught.value) == (
        "third answers 'c' to request 1, and the first server answers 'b': they do not compute "
        "the same model"
    )


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
    names = ("p50", "longest")
    found = loads_as_json(["b", "c", "a"], trials, "rate", names, lambda cell: {"cell": cell})
    assert [each["cell"] for each in found] == ["b", "a"]
    figures, kept = found[1], found[1].pop("trials")
    assert figures == {
        "cell": "a", "rate": 1.0, "requests": 5, "p50_milliseconds": 1000,
        "longest_milliseconds": 4000,
    }  # fmt: skip
    assert [(trial["round"], trial["order"]) for trial in kept] == [(1, 1), (2, 3), (3, 4)]
    assert kept[1] == {
        "round": 2, "order": 3, "rate": 0.25, "requests": 2, "p50_milliseconds": 4000,
        "longest_milliseconds": 4000,
    }  # fmt: skip


@pytest.mark.size("all")
def test_the_driver_alone_is_measured_with_each_number_of_clients(tmp_path):
    found = measure_driver(["a", "b"], (1, 8), ("p50", "p99"), seconds=0.01, log=tmp_path / "log")
    assert [each["clients"] for each in found] == [1, 8]
    assert all(each["requests_per_second"] > 50 for each in found)
    assert all(each["processor_milliseconds_per_request"] > 0 for each in found)
    first, second = driver_as_list(found, "p99").splitlines()
    assert first.startswith(f"- 1 client: p50 {found[0]['p50_milliseconds']:.2f} ms, p99 ")
    assert second.endswith(" ms of processor time a request")
