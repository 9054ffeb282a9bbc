"""The harness: options, what is written and printed, and how a benchmark ends."""

import json
from pathlib import Path

import pytest

from benchmarks.config_language.__main__ import BENCHMARK as CONFIG_LANGUAGE
from benchmarks.control_plane.__main__ import BENCHMARK as CONTROL_PLANE
from benchmarks.errors import BenchmarkError
from benchmarks.lmi.__main__ import BENCHMARK as LMI
from benchmarks.neuron.__main__ import BENCHMARK as NEURON
from benchmarks.program import RESULTS, ROOT, Benchmark, Run, add_trial_options
from benchmarks.publish.__main__ import BENCHMARK as PUBLISH
from benchmarks.report import result_page
from benchmarks.tensorrt.__main__ import BENCHMARK as TENSORRT
from benchmarks.triton.__main__ import BENCHMARK as TRITON

QUICK = ROOT / "build" / "benchmarks" / "quick"
BENCHMARKS = (CONFIG_LANGUAGE, CONTROL_PLANE, LMI, NEURON, PUBLISH, TENSORRT, TRITON)


def benchmark(measure=None):
    def nothing(_options):
        return Run((), ()), {"design": {"is_quick": True}, "found": [3]}

    return Benchmark(
        "two-words",
        "Measures nothing.",
        lambda parser: add_trial_options(parser, 5, 2),
        measure or nothing,
        lambda document: result_page(document, "Nothing", [f"Found {document['found']}."]),
        quick="everything",
    )


def test_every_benchmark_has_its_options_and_its_default_number_of_trials():
    trials = {each.name: each.parse([]).trials for each in BENCHMARKS}
    assert trials == {
        "config-language": 15, "control-plane": 7, "lmi": 6, "neuron": 6, "publish": 5,
        "tensorrt": 6, "triton": 7,
    }  # fmt: skip
    options = benchmark().parse(["--seed", "3", "--stated-trials", "4"])
    assert (options.seed, options.trials, options.stated_trials) == (3, 5, 4)
    assert options.command == "python -m benchmarks.two_words --seed 3 --stated-trials 4"


def test_a_quick_run_and_a_run_of_a_part_never_write_into_the_results(tmp_path):
    parse = LMI.parse
    assert parse([]).output == RESULTS == ROOT / "benchmarks" / "results"
    assert parse(["--quick"]).output == parse(["--part", "serving"]).output == QUICK
    assert parse(["--quick", "--output", str(RESULTS / "../results")]).output == QUICK
    assert parse(["--quick", "--output", str(RESULTS / "..")]).output == RESULTS / ".."
    assert parse(["--part", "serving", "--output", "x"]).output == Path("x")


@pytest.mark.parametrize(
    ("of", "arguments", "message"),
    [
        (benchmark(), ["--trials", "0"], "--trials: '0' is not a whole number of at least 1"),
        (benchmark(), ["--speed"], "unrecognized arguments: --speed"),
        (CONTROL_PLANE, ["--quick"], "unrecognized arguments: --quick"),
        (CONTROL_PLANE, ["--sizes", "1,x"], "--sizes: 'x' is not a whole number of at least 1"),
        (CONTROL_PLANE, ["--sizes", "6000"], "argument --sizes: 6000 is more than 5000 configs"),
        (LMI, ["--part", "all"], "argument --part: invalid Part value: 'all'"),
    ],
)
def test_a_wrong_option_is_named_and_ends_with_1(of, arguments, message, capsys):
    with pytest.raises(SystemExit) as caught:
        of.main(arguments)
    assert caught.value.code == 1
    assert capsys.readouterr().err.endswith(f"{message}\n")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (BenchmarkError("`cdk x` ended"), 1, "The benchmark ended early: `cdk x` ended\n"),
        (KeyboardInterrupt(), 130, "Stopped.\n"),
    ],
)
def test_a_run_that_ends_early_writes_no_result(error, code, message, capsys, tmp_path):
    def fail(_options):
        raise error

    assert benchmark(fail).main(["--output", str(tmp_path)]) == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", message)
    assert list(tmp_path.iterdir()) == []


def test_both_results_are_written_and_one_is_printed(capsys, tmp_path):
    folder = tmp_path / "new" / "folder"
    assert benchmark().main(["--output", str(folder)]) == 0
    page = capsys.readouterr().out
    assert page == (folder / "two-words.md").read_text()
    assert page.startswith("# Nothing\n\nA quick run: it shows that everything works, no more.")
    assert "\n\nFound [3].\n\n## Circumstances\n\n- Run: " in page
    assert benchmark().main(["--output", str(folder), "--json"]) == 0
    printed = capsys.readouterr().out
    assert printed == (folder / "two-words.json").read_text()
    document = json.loads(printed)
    assert (document["benchmark"], document["found"]) == ("two-words", [3])
    assert {"started_at", "ended_at", "commit", "machine"} < document.keys()


def test_an_output_that_cannot_be_written_is_found_before_measuring(capsys, tmp_path):
    (tmp_path / "file").touch()
    of = benchmark(lambda _options: pytest.fail("measured"))
    assert of.main(["--output", str(tmp_path / "file")]) == 1
    assert "The benchmark ended early: [Errno 17] File exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("of", "message"),
    [
        (TENSORRT, "nginx is not installed, and the published layout has it in front."),
        (NEURON, "nginx is not installed, and the published layout has it in front."),
        (TRITON, "Triton is not installed. Run `make triton`"),
        (PUBLISH, "versitygw is not built here: run `make versitygw` first"),
        (LMI, "The serving part needs a DJL Serving, and there is none. Run `make djl-serving`"),
    ],
)
def test_what_is_missing_is_named_before_anything_is_measured(
    of, message, monkeypatch, capsys, tmp_path
):
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    monkeypatch.delenv("DJL_SERVING_HOME", raising=False)
    monkeypatch.setenv("TRITON_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    output = tmp_path / "output"
    assert of.main(["--quick", "--output", str(output)]) == 1
    assert f"The benchmark ended early: {message}" in capsys.readouterr().err
    assert list(output.iterdir()) == []
