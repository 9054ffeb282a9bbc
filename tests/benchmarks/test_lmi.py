"""The LMI benchmark: what is measured, what is looked for before, and the ratios."""

import json
import os
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.execution import Timing
from benchmarks.lmi import servers
from benchmarks.lmi.design import (
    BASELINE,
    BODIES,
    PROMPTS,
    TRANSFERS,
    Content,
    Design,
    System,
    Transfer,
    Way,
    completion,
)
from benchmarks.lmi.report import page, result
from benchmarks.lmi.servers import Start, find_djl_serving, package
from benchmarks.lmi.serving import Life, ServingSession
from benchmarks.lmi.weights import WeightsSession
from benchmarks.load import LoadResult
from benchmarks.trials import Trial
from slipway import java_properties
from tests.benchmarks.results import committed, document_of, shape

FULL = Design(trials=3, transfer_trials=4, cores=2)
DESIGN = replace(FULL, transfer_trials=3)
OTHER_PART = "`--part weights` measures the other part without it."


def test_the_full_design_is_of_two_gigabytes_in_five_files():
    assert FULL.weights_bytes == 2_000_000_000
    assert FULL.shards == 5
    assert FULL.block_bytes % 4 == 0
    # Two archives of all of it, a third that was fetched, and what was extracted.
    assert 8_000_000_000 < FULL.disk_bytes < 10_000_000_000


def test_every_round_has_everything_once_in_an_order_of_its_own():
    systems, transfers = FULL.serving_rounds(), FULL.transfer_rounds()
    assert [sorted(each) for each in systems] == [sorted(System)] * 3
    assert [set(each) for each in transfers] == [set(TRANSFERS)] * 4
    assert all(len(each) == len(TRANSFERS) for each in transfers)
    assert len({tuple(each) for each in transfers}) > 1
    assert FULL.serving_rounds() == systems
    assert BASELINE in TRANSFERS


def make_home(folder, version):
    home = folder / version
    for name in ("bin", "lib"):
        (home / name).mkdir(parents=True)
    (home / "lib" / f"serving-{version}.jar").touch()
    make_program(home / "bin" / "serving", "true")
    return home


def make_program(path, line):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def environ(tmp_path):
    """A DJL Serving, a Java and a Python that have everything, as far as anybody looks."""
    home = make_home(tmp_path, "0.36.0")
    java = make_program(
        tmp_path / "java" / "bin" / "java", """echo 'openjdk version "17.0.1" 2021' >&2"""
    )
    found = {name: metadata.version(name) for name in ("numpy", "onnxruntime", "tokenizers")}
    found |= {"torch": "2.13.0", "transformers": "5.23.0", "peft": "0.21.2", "pillow": "13.0.0"}
    lines = "\\n".join(f"{name} {version}" for name, version in found.items())
    python = make_program(tmp_path / "python", f"printf '{lines}\\n'")
    return {
        "DJL_SERVING_HOME": str(home),
        "JAVA_HOME": str(java.parents[1]),
        "SLIPWAY_DJL_PYTHON": str(python),
        "PATH": os.defpath,
    }


def refusal_of(environ):
    with pytest.raises(BenchmarkError) as caught:
        find_djl_serving(environ)
    return str(caught.value)


def test_the_first_home_that_is_new_enough_is_taken(environ, tmp_path):
    old = make_home(tmp_path, "0.23.0")
    homes = os.pathsep.join((str(old), environ["DJL_SERVING_HOME"]))
    found = find_djl_serving(environ | {"DJL_SERVING_HOME": homes})
    assert (found.version, found.java) == ("0.36.0", "17.0.1")
    assert str(found.home) == environ["DJL_SERVING_HOME"]
    assert found.packages["peft"] == "0.21.2"


def test_homes_that_cannot_be_measured_are_named(environ, tmp_path):
    homes = os.pathsep.join(str(make_home(tmp_path, each)) for each in ("0.23.0", "0.27.0"))
    assert refusal_of(environ | {"DJL_SERVING_HOME": homes}).startswith(
        "There is DJL Serving 0.23.0, 0.27.0; the handler that is measured needs 0.36 or later. "
        "Run `make djl-serving`, or extract https://"
    )
    assert refusal_of(environ | {"DJL_SERVING_HOME": f"{tmp_path}/nowhere"}).startswith(
        f"DJL_SERVING_HOME names {tmp_path}/nowhere, which has no program bin/serving with one "
        "lib/serving-VERSION.jar. Run `make djl-serving`, or extract https://"
    )
    assert "JAVA_HOME is /nowhere, which has no program" in refusal_of(
        environ | {"JAVA_HOME": "/nowhere"}
    )


def test_what_the_handlers_interpreter_lacks_is_named(environ, tmp_path):
    bare = make_program(tmp_path / "bare", "printf 'numpy 2.0\\ntorch 2.13.0\\n'")
    assert refusal_of(environ | {"SLIPWAY_DJL_PYTHON": str(bare)}) == (
        f"{bare} has no onnxruntime, tokenizers, transformers, peft, pillow, which DJL Serving's "
        "handlers import. Set SLIPWAY_DJL_PYTHON to a Python that has numpy, onnxruntime, "
        "tokenizers, torch, transformers, peft, pillow: `make export` installs them in .venv. "
        f"{OTHER_PART}"
    )
    assert refusal_of(environ | {"SLIPWAY_DJL_PYTHON": "/nowhere/python"}).startswith(
        "SLIPWAY_DJL_PYTHON is /nowhere/python, which does not run: [Errno 2]"
    )


def test_servers_that_would_not_compute_the_same_are_refused(environ, monkeypatch):
    versions = {"numpy": metadata.version("numpy"), "onnxruntime": "0.1"}
    monkeypatch.setattr(servers.metadata, "version", lambda name: versions.get(name, "as it is"))
    message = refusal_of(environ)
    assert f"and {sys.executable} has 0.1, so that the servers would not compute" in message
    assert "Install onnxruntime==0.1 there." in message


def test_packages_differ_in_what_is_compared_alone():
    given = {
        system: package(system, Path("/m"), threads=2, max_batch_size=8)
        for system in System
        if system.is_djl
    }
    properties = {
        system: java_properties.parse(files["serving.properties"])
        for system, files in given.items()
    }
    common = {"engine": "Python", "minWorkers": "1", "maxWorkers": "1", "option.model_id": "/m"}
    single = common | {"option.intra_op_threads": "2"}
    assert properties[System.DJL_GRAPH_SINGLE] == single
    assert properties[System.DJL_GRAPH] == single | {"batch_size": "8", "max_batch_delay": "10"}
    assert properties[System.DJL_TRANSFORMERS] == common | {
        "option.entryPoint": "djl_python.huggingface",
        "option.rolling_batch": "disable",
        "option.dtype": "fp32",
    }
    assert properties[System.DJL_TRANSFORMERS_BATCHES] == properties[System.DJL_TRANSFORMERS] | {
        "batch_size": "8",
        "max_batch_delay": "10",
    }
    assert list(given[System.DJL_TRANSFORMERS]) == ["serving.properties"]
    assert given[System.DJL_GRAPH]["model.py"] == given[System.DJL_GRAPH_SINGLE]["model.py"]


def test_a_prompt_that_is_repeated_is_no_part_of_the_answer():
    added = json.dumps([{"generated_text": " of a bucket"}])
    repeated = json.dumps([{"generated_text": f"{PROMPTS[3]} of a bucket"}])
    assert completion(3, added) == completion(3, repeated) == " of a bucket"
    assert [json.loads(body)["inputs"] for body in BODIES] == list(PROMPTS)


@pytest.mark.parametrize("answer", ["", "{}", "[]", '[{"text": "a"}]', '[{"generated_text": 1}]'])
def test_what_is_no_answer_ends_the_benchmark(answer):
    with pytest.raises(BenchmarkError, match="not an answer to 'Amazon S3 bucket': "):
        completion(0, answer)


def test_an_answer_that_adds_nothing_ends_the_benchmark():
    answer = json.dumps([{"generated_text": PROMPTS[0]}])
    with pytest.raises(BenchmarkError, match="nothing was added to 'Amazon S3 bucket'"):
        completion(0, answer)


# Of a request, alone: what a batch saves is that eight take twice as long as one.
REQUEST_SECONDS = {
    System.SLIPWAY: 0.02, System.SLIPWAY_SINGLE: 0.02, System.DJL_GRAPH: 0.03,
    System.DJL_GRAPH_SINGLE: 0.025, System.DJL_TRANSFORMERS: 0.1,
    System.DJL_TRANSFORMERS_BATCHES: 0.1,
}  # fmt: skip
TRANSFER_SECONDS = {Way.SYNC: 2.0, Way.COPY: 2.2, Way.STREAMED: 6.0, Way.STORED: 9.0}
# How much slower the machine is in each round.
SLOWER = (1.0, 1.1, 1.4)
# Of two clients the second waits 4 s for its first answer, until the first has ended.
WAITING = LoadResult(((1.0,) * 4, (5.0, 1.0, 1.0, 1.0)), (4.0, 8.0), ((0, "{}", 8),), 0.0, 8.0)


def load(system, clients, slower):
    together = clients if not system.takes_batches else 1 + (clients > 1)
    seconds = REQUEST_SECONDS[system] * together * slower
    answers = ((0, "{}", 10 * clients),)
    times = ((seconds,) * 10,) * clients
    return LoadResult(times, (seconds * 10,) * clients, answers, 0.0, seconds * 10)


def serving_session(waiting=None):
    trials = []
    for number, slower in enumerate(SLOWER, start=1):
        for system in DESIGN.serving_rounds()[number - 1]:
            start = Start((6.0 if system.is_djl else 1.5) * slower, 7.0)
            loads = {clients: load(system, clients, slower) for clients in (8, 1)}
            if system is waiting:
                loads[8] = WAITING
            trials.append(Trial(system, number, Life(start, (9.0, 10.0), loads)))
    return ServingSession(tuple(trials), 1234, 1233)


def weights_session(*sync_seconds):
    def seconds(transfer, number):
        if transfer.way is Way.SYNC:
            return sync_seconds[number - 1]
        return TRANSFER_SECONDS[transfer.way] * (2 if transfer.content is Content.FLOAT32 else 1)

    trials = [
        Trial(transfer, number, Timing(seconds(transfer, number), 3.0))
        for number in (1, 2, 3)
        for transfer in DESIGN.transfer_rounds()[number - 1]
    ]
    return WeightsSession(
        tuple(trials), {1: 1.5e9, 8: 2.25e9}, 1.1e9, 2_000_000_000,
        {Content.RANDOM: 2_000_600_000, Content.FLOAT32: 1_852_000_000},
    )  # fmt: skip


def document(waiting=None, sync_seconds=(2.0, 2.0, 2.0)):
    sessions = serving_session(waiting), weights_session(*sync_seconds)
    return document_of(result(DESIGN, *sessions))


def test_servers_are_compared_round_by_round():
    comparisons = document()["serving"]["comparisons"]
    # Both sides of a round had the same machine: its speed is not in the range.
    assert [each["other_ready_in_times_of_system"] for each in comparisons] == [
        {"value": 4.0, "low": 4.0, "high": 4.0}
    ] * 4
    throughputs = [each["system_requests_per_second_in_times_of_other"] for each in comparisons]
    assert [[each["value"] for each in found] for found in throughputs] == [
        [1.25, 1.25], [1.5, 1.5], [5.0, 5.0], [5.0, 20.0],
    ]  # fmt: skip
    assert {(each["low"], each["high"]) for each in throughputs[0]} == {(1.25, 1.25)}


def test_a_servers_times_have_their_range():
    systems = {each["system"]: each for each in document()["serving"]["systems"]}
    found = systems[System.DJL_GRAPH]
    assert found["ready_seconds"] == {"median": 6.6, "low": 6.0, "high": 8.4}
    alone = found["loads"][0]
    assert (alone["clients"], alone["requests"]) == (1, 30)
    assert alone["requests_per_second"]["median"] == pytest.approx(1 / 0.033, abs=0.001)
    assert [alone[f"{name}_milliseconds"] for name in ("p50", "p95", "longest")] == [33, 42, 42]


def test_throughput_is_what_was_answered_also_where_clients_wait_for_others():
    found = document(waiting=System.DJL_GRAPH_SINGLE)
    systems = {each["system"]: each for each in found["serving"]["systems"]}
    together = systems[System.DJL_GRAPH_SINGLE]["loads"][1]
    assert together["requests_per_second"] == {"median": 1.0, "low": 1.0, "high": 1.0}
    assert (together["p50_milliseconds"], together["longest_milliseconds"]) == (1000, 5000)


def test_a_transfers_ratio_is_of_medians_and_its_range_of_rounds():
    transfers = document(sync_seconds=(1.0, 2.0, 3.0))["weights"]["transfers"]
    assert [(each["way"], each["content"]) for each in transfers] == [
        (each.way, each.content) for each in TRANSFERS
    ]
    streamed = transfers[TRANSFERS.index(Transfer(Way.STREAMED, Content.RANDOM))]
    assert streamed["times_of_baseline"] == {"value": 3.0, "low": 2.0, "high": 6.0}
    assert streamed["readings"]["seconds"] == {"median": 6.0, "low": 6.0, "high": 6.0}


def test_the_document_has_every_trial_in_the_committed_form():
    found, kept = document(), committed("lmi")
    for name in ("design", "serving", "weights"):
        assert shape(found[name]) == shape(kept[name])
    trials = found["serving"]["trials"]
    assert [trial["order"] for trial in trials] == list(range(1, 19))
    assert [each["clients"] for each in trials[0]["requests_per_second"]] == [1, 8]
    assert {trial["ready_seconds"] for trial in trials} == {1.5, 1.65, 2.1, 6.0, 6.6, 8.4}
    assert [len(each["trials"]) for each in found["weights"]["transfers"]] == [3] * 6


def test_a_part_that_was_not_measured_is_left_out():
    serving = document_of(result(DESIGN, serving_session(), None))
    assert serving["weights"] is None
    assert "GB of weights" not in page(serving)
    weights = document_of(result(DESIGN, None, weights_session(2.0, 2.0, 2.0)))
    assert "The sample model" not in page(weights)
    assert "100.0% of the size for random bytes and 92.6% of the size" in page(weights)
