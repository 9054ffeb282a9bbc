"""`slipway cost`: the bill of each model in the environments that deploy it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.projects import config_text, write_project

WRONG = config_text("wrong", ("instance_count: 2", "instance_count: none"))


def test_the_bill_names_what_is_unknown_and_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slipway_command: Any
):
    monkeypatch.chdir(write_project(tmp_path, {"tiny": config_text("tiny")}, published=["tiny"]))
    code, text, _ = slipway_command("cost")
    rows = [line.strip().partition("  ") for line in text.splitlines()]
    lines = {name: value.strip() for name, _, value in rows}
    # What runs on the laptop is no bill.
    assert (code, text.splitlines()[0]) == (0, "tiny in production, eu-west-1")
    assert lines["an hour"] == "1.64 USD (ml.g4dn.xlarge 0.821 USD)"
    assert lines["a month"] == "1,198.66 USD"
    assert lines["alarms"] == "0.5 USD a month (5 metrics at 0.1 USD)"
    assert lines["artifact in S3"].startswith("unknown a month (")
    assert lines["total a month"] == "unknown"
    assert lines["logs, written"] == "by use: 0.57 USD per GB"
    assert {"2023-12-31", "2026-10-02"} <= set(lines)
    code, text, _ = slipway_command("cost", "tiny", "--env", "local", "--json")
    [bill] = json.loads(text)["bills"]
    assert (code, bill["environment"], bill["total"]["expected"]) == (0, "local", 1075.64)


def test_the_problems_of_all_models_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slipway_command: Any
):
    models = {"wrong": WRONG, "worse": WRONG.replace("wrong", "worse")}
    monkeypatch.chdir(write_project(tmp_path, models))
    code, _, errors = slipway_command("cost")
    assert code == 1
    assert "model_configs/wrong.yaml:" in errors
    assert "model_configs/worse.yaml:" in errors
