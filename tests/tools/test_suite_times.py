import json
from pathlib import Path

import pytest

from tools import suite_times

JUNIT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" errors="0" failures="0" skipped="0" tests="3" time="62.5">
<testcase classname="tests.unit.config.test_load" name="test_one[a.b]" time="0.5"/>
<testcase classname="tests.embedded.lifecycle.test_life.TestDeployed" name="test_two" time="20">
<properties><property name="size" value="all"/><property name="group" value="java"/>
<property name="starts cdk" value="2"/></properties>
</testcase>
<testcase classname="tests.embedded.lifecycle.test_life" name="test_three" time="9.5">
<properties><property name="starts cdk" value="1"/><property name="starts jvm" value="4"/>
</properties></testcase>
</testsuite></testsuites>
"""
FAILED = """<testsuites><testsuite time="1.25"><testcase classname="tests.test_x" name="test_it"
time="1"><failure message="no">no</failure></testcase></testsuite></testsuites>"""


@pytest.fixture
def junit(tmp_path):
    path = tmp_path / "all.xml"
    path.write_text(JUNIT)
    return path


@pytest.fixture
def budget(tmp_path, monkeypatch):
    path = tmp_path / "budget.json"
    monkeypatch.setattr(suite_times, "BUDGET", path)
    write_budget(path, {"unit/config": 1, "embedded/lifecycle": 19.5, "golden": 50})
    return path


def write_budget(path: Path, seconds: dict[str, float], **more: dict[str, float]) -> None:
    path.write_text(json.dumps({"seconds": seconds, "more_seconds_with": more}))


def test_the_report_adds_up_folders(junit, budget, capsys):
    assert suite_times.main([str(junit)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["embedded/lifecycle", "29.5", "20", "2", "3", "cdk,", "4", "jvm"]
    assert lines[2].split() == ["unit/config", "0.5", "1", "1"]
    # The budget of a folder that did not run is no room for the others.
    assert lines[3].split() == ["all", "30.0", "20", "3"]
    assert lines[6] == "     20.0  tests/embedded/lifecycle/test_life.py::TestDeployed.test_two"
    assert lines[8] == "      0.5  tests/unit/config/test_load.py::test_one[a.b]"
    assert lines[-1].strip("=") == " 3 passed in 62.50s (0:01:02) "


def test_more_than_one_and_a_half_times_the_budget_fails(junit, budget, capsys):
    write_budget(budget, {"unit/config": 1, "embedded/lifecycle": 18})
    assert suite_times.main([str(junit)]) == 1
    *_, over, remedy, closing = capsys.readouterr().out.splitlines()
    assert over == "30 s of tests: more than 1.5 times 19 s."
    assert remedy == "Make them cheaper, or say in budget.json what the new ones may cost."
    assert "3 passed" in closing


def test_a_group_brings_its_own_budget(junit, budget, capsys):
    more = {"java": {"embedded/lifecycle": 1.5}, "torch": {"unit/config": 100}}
    write_budget(budget, {"unit/config": 1, "embedded/lifecycle": 18}, **more)
    assert suite_times.main([str(junit)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[2] == "20"
    assert lines[2].split()[2] == "1"


def test_seconds_of_files_are_for_the_workers(junit, budget, tmp_path, monkeypatch):
    monkeypatch.setattr(suite_times, "SECONDS", tmp_path / "seconds.json")
    suite_times.main([str(junit), "--write-seconds"])
    assert json.loads((tmp_path / "seconds.json").read_text()) == {
        "tests/embedded/lifecycle/test_life.py": 29.5
    }


@pytest.mark.parametrize("content", [None, "<no"])
def test_no_junit_file(content, tmp_path, capsys):
    path = tmp_path / "none.xml"
    if content:
        path.write_text(content)
    assert suite_times.main([str(path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"{path}: ")
    assert "`make test-all` writes build/junit/*.xml" in error


def test_the_closing_line_is_of_all_runs(junit, budget, tmp_path, capsys):
    (tmp_path / "more.xml").write_text(FAILED)
    suite_times.main([str(junit), str(tmp_path / "more.xml")])
    closing = capsys.readouterr().out.splitlines()[-1]
    assert closing.strip("=") == " 1 failed, 3 passed in 63.75s (0:01:03) "
