"""`slipway explain` prints what the page says."""

import json
import re
from pathlib import Path

import pytest

import slipway
from slipway.codes.code import Code
from slipway.codes.table import entries

ROOT = Path(slipway.__file__).parents[1]


@pytest.fixture
def run(slipway_command):
    return slipway_command.of("explain")


def test_the_page_shows_what_the_command_prints(run):
    page = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
    output = run.done("SW201")
    assert f"$ slipway explain SW201\n{output}```" in page


@pytest.mark.parametrize("text", ["SW201", "sw201", "201", "[SW201]"])
def test_a_code_is_known_however_it_is_written(run, text):
    assert run(text)[1].startswith("SW201: The instance type is not known\n")


def test_all_entries_as_json(run):
    documents = json.loads(run("--json")[1])
    assert [document["code"] for document in documents] == sorted(Code)
    for document in documents:
        for named in re.findall(r"\((docs/[^)#]*)", document["cause"] + document["remedy"]):
            assert (ROOT / named).is_file(), document


def test_one_entry_as_json(run):
    code, output, _ = run("SW504", "--json")
    entry = entries()[Code.EMBEDDED_AWS_NOT_RUNNING]
    assert code == 0
    assert json.loads(output) == {
        "code": "SW504",
        "title": entry.title,
        "cause": entry.cause,
        "remedy": entry.remedy,
        "page": "docs/troubleshooting.md",
    }


def test_without_a_code_all_are_listed(run):
    lines = run()[1].splitlines()
    assert len(lines) == len(Code)
    assert lines[0] == "SW101  The file cannot be read"


def test_an_unknown_code_ends_with_1_and_the_nearest(run):
    errors = run.refused("SW279")
    assert errors == (
        "1 problem\n- there is no problem with the code 'SW279' [SW416]\n"
        "    The nearest codes are SW290, SW291, SW292. `slipway explain` lists all codes.\n"
    )
    assert json.loads(run("SW279", "--json")[1])["problems"][0]["code"] == "SW416"
