"""checkov finds what docs/security.md excuses, and no more. It calls nobody."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.groups import BUILD
from tests.synth.security import PAGE, Finding, compare, excuses, logical_ids, make_app

pytestmark = pytest.mark.checkov

PROGRAMS = BUILD / "checkov" / "bin"
# Python imports it at its start, and it writes down every connection and every name looked up.
WATCH = """\
import os, sys

def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo"):
        with open(os.environ["CONNECTIONS"], "a") as file:
            print(event, arguments[-1] if event == "socket.connect" else arguments[0], file=file)

sys.addaudithook(watch)
"""


def run(folder: Path, *command: str | Path) -> tuple[str, list[str]]:
    """Runs a program of checkov's environment; returns its output and the connections it made.

    Args:
        folder: where it runs. It has no key of the platform of checkov's makers.
        command: the program and its arguments.
    """
    (folder / "sitecustomize.py").write_text(WATCH, encoding="utf-8")
    connections = folder / "connections"
    connections.write_text("", encoding="utf-8")
    done = subprocess.run(
        command,
        cwd=folder,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "PYTHONPATH": str(folder),
            "CONNECTIONS": str(connections),
            # It would ask PyPI for its newest version.
            "CKV_SKIP_PACKAGE_UPDATE_CHECK": "true",
        },
        capture_output=True,
        text=True,
        check=True,
        timeout=250,
    )
    return done.stdout, connections.read_text("utf-8").splitlines()


def test_a_connection_would_be_seen(tmp_path: Path):
    call = "import socket; socket.getaddrinfo('127.0.0.1', 9)"
    assert run(tmp_path, PROGRAMS / "python", "-c", call)[1] == ["socket.getaddrinfo 127.0.0.1"]


def test_checkov_finds_what_the_page_excuses_and_calls_nobody(tmp_path: Path):
    app = make_app(tmp_path)
    app.synth()
    templates = tmp_path / "templates"
    templates.mkdir()
    files = sorted(Path(app.outdir).glob("*.template.json"))
    for file in files:
        shutil.copy(file, templates)
    output, connections = run(
        tmp_path, PROGRAMS / "checkov", "--directory", "templates", "--framework",
        "cloudformation", "--output", "json", "--compact", "--soft-fail",
        # It would fetch guidelines from its makers' platform.
        "--skip-download",
    )  # fmt: skip
    report = json.loads(output)
    assert connections == []
    assert report["summary"]["parsing_errors"] == 0
    assert {Path(each["file_path"]).name for each in report["results"]["passed_checks"]} == {
        file.name for file in files
    }
    paths = logical_ids(Path(app.outdir))
    findings = {
        Finding(
            each["check_id"],
            paths[Path(each["file_path"]).name][each["resource"].rpartition(".")[2]],
        )
        for each in report["results"]["failed_checks"]
    }
    of_checkov = [each for each in excuses(PAGE.read_text("utf-8")) if each.rule.startswith("CKV_")]
    assert compare(findings, of_checkov) == []
