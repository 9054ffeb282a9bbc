"""`python -m benchmarks.control_plane`: options, and how it ends."""

import pytest

from benchmarks.control_plane import __main__ as program
from benchmarks.errors import BenchmarkError
from benchmarks.program import ROOT


def test_the_defaults_measure_the_goal():
    options = program.parse([])
    assert options.sizes == (1, 10, 100, 500)
    assert (options.trials, options.stated_trials) == (7, 3)
    assert options.output == ROOT / "benchmarks" / "results"


def test_sizes_are_sorted_and_counted_once():
    assert program.parse(["--sizes", "500, 1,10,1"]).sizes == (1, 10, 500)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sizes", "1,x"], "argument --sizes: 'x' is not a whole number of at least 1"),
        (["--sizes", ""], "argument --sizes: '' is not a whole number of at least 1"),
        (["--sizes", "6000"], "argument --sizes: 6000 is more than 5000 configs"),
        (["--trials", "0"], "argument --trials: '0' is not a whole number of at least 1"),
        (["--speed"], "unrecognized arguments: --speed"),
    ],
)
def test_a_wrong_option_is_named_and_ends_with_1(arguments, message, capsys):
    with pytest.raises(SystemExit) as caught:
        program.main(arguments)
    assert caught.value.code == 1
    assert capsys.readouterr().err.endswith(f"{message}\n")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (BenchmarkError("`cdk x` ended"), 1, "The benchmark ended early: `cdk x` ended\n"),
        (KeyboardInterrupt(), 130, "Stopped.\n"),
    ],
)
def test_a_run_that_ends_early_writes_no_result(
    error, code, message, monkeypatch, capsys, tmp_path
):
    def fail(_design: object) -> tuple[dict, str]:
        raise error

    monkeypatch.setattr(program, "_measure", fail)
    assert program.main(["--output", str(tmp_path)]) == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", message)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("option", "printed"), [([], "# page\n"), (["--json"], "{}\n")])
def test_results_are_written_and_one_is_printed(option, printed, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(program, "_measure", lambda _design: ({}, "# page\n"))
    folder = tmp_path / "new" / "folder"
    assert program.main(["--output", str(folder), *option]) == 0
    assert capsys.readouterr().out == printed
    assert (folder / "control-plane.json").read_text() == "{}\n"
    assert (folder / "control-plane.md").read_text() == "# page\n"


def test_an_output_that_cannot_be_written_is_found_before_measuring(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(program, "_measure", lambda _design: pytest.fail("measured"))
    (tmp_path / "file").touch()
    assert program.main(["--output", str(tmp_path / "file")]) == 1
    assert "The benchmark ended early: [Errno 17] File exists" in capsys.readouterr().err
