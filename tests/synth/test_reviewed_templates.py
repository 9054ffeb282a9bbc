"""`slipway review --templates`: the difference that each commit's own app makes."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.pages import ROOT
from tests.support.projects import config_text, write_project
from tests.support.repositories import commit, make_repository

MODEL = "tiny"


@pytest.mark.size("all")
def test_templates_of_the_same_model_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slipway_command: Any
):
    make_repository(tmp_path)
    write_project(tmp_path, {MODEL: config_text(MODEL)}, published=[MODEL])
    shutil.copy(ROOT / "app.py", tmp_path)
    commit(tmp_path)
    other = config_text(MODEL, ("milliseconds: 600", "milliseconds: 700"))
    (tmp_path / "model_configs" / f"{MODEL}.yaml").write_text(other, "utf-8")
    monkeypatch.chdir(tmp_path)
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
    (tmp_path / "app.py").write_text("raise SystemExit('no app today')\n", "utf-8")
    code, _, error = slipway_command("review", "--base", "HEAD", "--templates")
    assert (code, "wrote no templates: no app today [SW459]" in error) == (1, True)
    # The app gets the feature flags of cdk.json, as from the CDK CLI.
    (tmp_path / "cdk.json").write_text('{"context": {"a flag": 12}}', "utf-8")
    app = "import os; raise SystemExit(os.environ['CDK_CONTEXT_JSON'])\n"
    (tmp_path / "app.py").write_text(app, "utf-8")
    error = slipway_command("review", "--base", "HEAD", "--templates")[2]
    assert '"a flag": 12, "env": "production"' in error
