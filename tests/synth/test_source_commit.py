"""The project's commit in the templates: there, and no line of a difference."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from slipway.config.names import COMMIT_RULE
from tests.support.projects import config_text, write_project
from tests.support.repositories import commit, make_repository
from tests.synth.assemblies import ROOT, Assembly, run_app

pytestmark = [pytest.mark.cdk, pytest.mark.size("all")]


def run(*command: str, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path},
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.stdout


def test_only_the_commit_of_two_commits_differs_and_the_cdk_cli_hides_it(tmp_path: Path):
    root = write_project(tmp_path, {"one": config_text("one")}, published=["one"])
    shutil.copy(ROOT / "app.py", root)
    make_repository(root)
    found = []
    for name in ("old", "new"):
        made = commit(root)
        with run_app(root, root / name, {}) as process:
            _, errors = process.communicate()
        assert process.returncode == 0, errors
        template = Assembly(root / name).template("one")
        rule = template["Rules"].pop(COMMIT_RULE)
        (unlike,) = rule["Assertions"][0]["Assert"]["Fn::Not"]
        assert unlike == {"Fn::Contains": [[made], {"Ref": "BootstrapVersion"}]}
        assert COMMIT_RULE not in Assembly(root / name).template("foundation")["Rules"]
        found.append(template)
    assert found[0] == found[1]
    options = ("--exclusively", "--app", "new", "--template", "old/one.template.json", "--fail")
    assert "There were no differences" in run("cdk", "diff", "one", *options, folder=root)
