"""What loads a deployed endpoint; one is loaded in tests/embedded/lifecycle/test_bert.py."""

import json
import shutil
from pathlib import Path

import pytest

from benchmarks.load import LoadResult, OpenLoadResult
from benchmarks.neuron.endpoint import (
    CONTEXT_WORDS,
    QUESTION_WORDS,
    WORDS,
    closed_summary,
    main,
    make_bodies,
    make_parser,
    open_summary,
)
from benchmarks.program import ROOT


def test_a_sentence_takes_a_graph_for_128_tokens_and_fits_it() -> None:
    # Of words that are one token each, with [CLS] and twice [SEP].
    assert 64 < QUESTION_WORDS + CONTEXT_WORDS + 3 <= 128
    bodies = make_bodies(6, seed=1)
    assert bodies == make_bodies(6, seed=1)
    assert len(set(bodies)) == len(bodies)
    assert bodies != make_bodies(6, seed=2)
    for body in bodies:
        inputs = json.loads(body)["inputs"]
        assert len(inputs) == 6
        for each in inputs:
            assert len(each["question"].split()) == QUESTION_WORDS
            assert len(each["context"].split()) == CONTEXT_WORDS
            assert set(f"{each['question']} {each['context']}".split()) <= set(WORDS)


def test_throughput_is_clients_over_their_mean_latency_in_sentences() -> None:
    # Two clients, of 10 s each, with 100 and 50 requests.
    latencies = [0.1] * 100 + [0.2] * 50
    found = closed_summary(
        6,
        [LoadResult([each], [10.0], (), 0.0, 10.0) for each in (latencies[:100], latencies[100:])],
    )
    assert found == {
        "loop": "closed",
        "sentences_per_second": 90.0,
        "p50_milliseconds": 100.0,
        "p95_milliseconds": 200.0,
        "p99_milliseconds": 200.0,
        "requests": 150,
    }


def test_of_the_open_loop_the_rates_of_the_processes_add_up() -> None:
    # Two processes, each with 100 answers in 10 s; one of them sent its last request late.
    found = open_summary(
        6,
        [
            OpenLoadResult([0.1] * 100, [0.0] * 100, 10.0, 120, 1.0),
            OpenLoadResult([0.2] * 100, [0.0] * 95 + [0.1] * 5, 10.0, 120, 1.0),
        ],
    )
    assert found == {
        "loop": "open",
        "sentences_per_second": 120.0,
        "p50_milliseconds": 150.0,
        "p95_milliseconds": 200.0,
        "p99_milliseconds": 200.0,
        "requests": 200,
        "sent_late_p99_milliseconds": 100.0,
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x"], "one of the arguments --clients --requests-per-second is required"),
        (
            ["x", "--clients", "1", "--requests-per-second", "1"],
            "argument --requests-per-second: not allowed with argument --clients",
        ),
    ],
)
def test_a_wrong_option_is_named_and_ends_with_1(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        make_parser().parse_args(arguments)
    assert caught.value.code == 1
    assert capsys.readouterr().err.endswith(f"{message}\n")


def test_without_an_endpoint_the_reason_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copyfile(ROOT / "environments.yaml", tmp_path / "environments.yaml")
    arguments = ["bert-qa-inf2", "--clients", "2", "--processes", "2", "--project", str(tmp_path)]
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        "The load ended early: 1 problem\n- the embedded AWS is not running [SW504]\n"
        "    Start it with `slipway local start`.\n"
    )
