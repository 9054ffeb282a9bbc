"""An app as a process of its own: its reports, the project's commit, and `slipway review`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from slipway.config.names import COMMIT_RULE
from tests.support.projects import config_text, write_project
from tests.support.repositories import commit, make_repository
from tests.synth.assemblies import ROOT, Assembly, run_app

pytestmark = pytest.mark.size("all")

MODEL = "tiny"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_project(tmp_path, {MODEL: config_text(MODEL)}, published=[MODEL])
    shutil.copy(ROOT / "app.py", tmp_path)
    return tmp_path


def test_what_is_wrong_is_a_report_and_no_traceback(root: Path) -> None:
    def report(**context: str) -> str:
        with run_app(root, root / "out", {}, **context) as process:
            output, errors = process.communicate()
        assert (process.returncode, output) == (1, "")
        assert "Traceback" not in errors
        assert not (root / "out" / "manifest.json").exists()
        return errors

    errors = report(env="prodution")
    assert "1 problem\n- environments.yaml:1:1: there is no environment 'prodution' [SW208]\n" in (
        errors
    )
    assert "Did you mean `production`? Known are local, production;" in errors
    # A program of a team's own.
    app = "from slipway.cdk import App\n\napp = App(__file__)\n"
    (root / "app.py").write_text(f"{app}app.models['tinny']\napp.synth()\n")
    assert "1 problem\n- no model config matches 'tinny' [SW" in report()


@pytest.mark.cdk
def test_only_the_commit_of_two_commits_differs_and_the_cdk_cli_hides_it(root: Path) -> None:
    make_repository(root)
    found = []
    for name in ("old", "new"):
        made = commit(root)
        with run_app(root, root / name, {}) as process:
            _, errors = process.communicate()
        assert process.returncode == 0, errors
        template = Assembly(root / name).template(MODEL)
        rule = template["Rules"].pop(COMMIT_RULE)
        (unlike,) = rule["Assertions"][0]["Assert"]["Fn::Not"]
        assert unlike == {"Fn::Contains": [[made], {"Ref": "BootstrapVersion"}]}
        assert COMMIT_RULE not in Assembly(root / name).template("foundation")["Rules"]
        found.append(template)
    assert found[0] == found[1]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    templates = ("--app", "new", "--template", f"old/{MODEL}.template.json")
    done = subprocess.run(
        ["cdk", "diff", MODEL, "--exclusively", *templates, "--fail"],
        cwd=root,
        env={**os.environ, "PATH": path},
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert "There were no differences" in done.stdout


def test_a_review_compares_the_templates_that_each_commits_own_app_makes(
    root: Path, monkeypatch: pytest.MonkeyPatch, slipway_command: Any
) -> None:
    make_repository(root)
    commit(root)
    other = config_text(MODEL, ("milliseconds: 600", "milliseconds: 700"))
    (root / "model_configs" / f"{MODEL}.yaml").write_text(other, "utf-8")
    monkeypatch.chdir(root)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    code, text, error = slipway_command("review", "--base", "HEAD", "--templates", "--markdown")
    assert (code, error) == (0, "")
    _, _, folded = text.partition("<details><summary>Templates of production</summary>\n\n")
    lines = [line for line in folded.splitlines() if line.startswith(("-", "+"))]
    assert lines == [
        f"--- a/{MODEL}",
        f"+++ b/{MODEL}",
        '-    "Threshold": 600000,',
        '+    "Threshold": 700000,',
    ]
    (root / "app.py").write_text("raise SystemExit('no app today')\n", "utf-8")
    code, _, error = slipway_command("review", "--base", "HEAD", "--templates")
    assert (code, "wrote no templates: no app today [SW459]" in error) == (1, True)
    # The app gets the feature flags of cdk.json, as from the CDK CLI.
    (root / "cdk.json").write_text('{"context": {"a flag": 12}}', "utf-8")
    app = "import os; raise SystemExit(os.environ['CDK_CONTEXT_JSON'])\n"
    (root / "app.py").write_text(app, "utf-8")
    error = slipway_command("review", "--base", "HEAD", "--templates")[2]
    assert '"a flag": 12, "env": "production"' in error
