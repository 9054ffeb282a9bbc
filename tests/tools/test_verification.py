"""The runner of `make verify-gpu` and `make verify-neuron`."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tools.verification.runner import Step, Verification, lacking, verify

Run = Callable[..., int]


def verification(*steps: Step, missing: Sequence[str] = ()) -> Verification:
    return Verification(
        name="verify-abacus",
        module="tests.tools.verification_steps",
        about="Verifies an abacus.",
        steps=steps,
        missing=lambda: missing,
        device=lambda: {"beads": 100},
        packages=("numpy", "no-such-package"),
    )


def step(name: str, *needs: str, limit_seconds: float = 60) -> Step:
    return Step(name, f"does {name}", limit_seconds, needs)


@pytest.fixture
def run(tmp_path):
    def run(given: Verification, *arguments: str) -> int:
        paths = ("--folder", str(tmp_path / "files"), "--output", str(result_of(tmp_path)))
        return verify(given, [*paths, *arguments])

    return run


def result_of(tmp_path: Path) -> Path:
    return tmp_path / "results" / "result.json"


def read(tmp_path: Path) -> Any:
    return json.loads(result_of(tmp_path).read_text("utf-8"))


def outcomes(tmp_path: Path) -> dict[str, str]:
    return {each["name"]: each["outcome"] for each in read(tmp_path)["steps"]}


def test_all_that_is_missing_is_listed_and_nothing_runs(run, tmp_path, capsys):
    remedies = {
        "json": "x",
        "no_such_module": "run `make abacus`",
        "no_such.module": "buy it",
        "json.no_such": "build it",
    }
    missing = ["there is no abacus: buy one", *lacking(remedies)]
    assert run(verification(step("find"), missing=missing)) == 1
    assert capsys.readouterr().err == (
        "This machine cannot run `make verify-abacus` yet:\n"
        "- there is no abacus: buy one\n"
        "- the Python module no_such_module is not installed: run `make abacus`\n"
        "- the Python module no_such.module is not installed: buy it\n"
        "- the Python module json.no_such is not installed: build it\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_the_result_has_the_machine_the_device_and_the_findings(run, tmp_path, capsys):
    options = ("--seed", "5", "--seconds", "0.5", "--trials", "3", "--quick")
    assert run(verification(step("find")), *options) == 0
    result = read(tmp_path)
    assert (result["verification"], result["quick"]) == ("verify-abacus", True)
    assert result["device"] == {"beads": 100}
    assert result["command"] == "make verify-abacus"
    assert "numpy" in result["machine"]["versions"]
    assert "no-such-package" not in result["machine"]["versions"]
    [record] = result["steps"]
    assert record.pop("seconds") > 0
    assert record == {
        "name": "find",
        "outcome": "ok",
        "detail": "",
        "facts": {"quick": "True", "tokens": 3, "nothing": None},
        "header": ["system", "requests/s"],
        "rows": [["Slipway", 1.5], ["PyTorch", None]],
    }
    # A rehearsal's files are apart from the real ones.
    assert (tmp_path / "files" / "quick" / "found").read_text() == "5 0.5 3"
    assert "find: ok  quick True, tokens 3, nothing None\n" in capsys.readouterr().err


def test_a_step_that_fails_stops_only_the_steps_that_need_it(run, tmp_path):
    names = ("differ", "refuse", "fail", "exit", "killed")
    given = verification(*map(step, names), step("hang", "exit", "differ"), step("find"))
    assert run(given) == 1
    assert outcomes(tmp_path) == {
        **dict.fromkeys(names, "failed"),
        "hang": "left out",
        "find": "ok",
    }
    records = {each["name"]: each for each in read(tmp_path)["steps"]}
    assert records["differ"]["detail"] == "2 of 8 answers are wrong; one is empty"
    assert records["differ"]["facts"] == {"answers": 8}
    assert records["refuse"]["detail"] == "files is missing: run the step find first"
    assert records["fail"]["detail"].startswith("Traceback")
    assert records["fail"]["detail"].endswith("ZeroDivisionError: a bug")
    assert records["exit"]["detail"] == "exit code 7"
    assert records["killed"]["detail"] == "exit code -9"
    assert records["hang"]["detail"] == "it needs differ and exit, which did not succeed"


def test_a_step_that_takes_too_long_has_failed_and_ends_what_it_started(run, tmp_path):
    assert run(verification(step("serve", limit_seconds=1), step("find"))) == 1
    assert outcomes(tmp_path) == {"serve": "failed", "find": "ok"}
    [served, _] = read(tmp_path)["steps"]
    assert served["detail"] == "tools.verification.runner did not end within 1 seconds"
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "files" / "server").read_text()), 0)


def test_a_step_that_runs_alone_leaves_the_others_in_the_result(run, tmp_path):
    given = verification(step("exit"), step("find"))
    assert run(given) == 1
    before = read(tmp_path)["steps"]
    assert run(given, "find") == 0
    assert outcomes(tmp_path) == {"exit": "failed", "find": "ok"}
    assert read(tmp_path)["steps"][0] == before[0]
    # A rehearsal's steps are no steps of a real run.
    assert run(given, "find", "--quick") == 0
    assert outcomes(tmp_path) == {"find": "ok"}


def test_a_request_to_end_keeps_the_result_of_the_steps_before(run, tmp_path):
    assert run(verification(step("find"), step("interrupt"), step("differ"))) == 130
    assert outcomes(tmp_path) == {"find": "ok"}


def test_an_unknown_step_is_named_with_those_that_exist(run, tmp_path, capsys):
    with pytest.raises(SystemExit) as caught:
        run(verification(step("find"), step("hang")), "find", "fnid", "bang")
    assert caught.value.code == 1
    assert capsys.readouterr().err.endswith(": no step fnid or bang; the steps are find, hang\n")
    assert not result_of(tmp_path).exists()


def test_single_steps_run_without_those_that_they_need(run, tmp_path):
    given = verification(step("exit"), step("find", "exit"), step("differ"))
    assert run(given, "find") == 0
    assert outcomes(tmp_path) == {"find": "ok"}
