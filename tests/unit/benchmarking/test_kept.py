"""Which runs are kept beside the lock, with which figures."""

import json
from copy import deepcopy
from typing import Any

import pytest

from slipway.benchmarking.kept import measurement_of
from slipway.benchmarking.results import FORMAT, SUMMARY
from slipway.project import Project
from slipway.sizing.measured import Measurement, image_name, settings_digest
from tests.support.projects import config_text, refusal, write_project


def figure(value: float, spread: float | None = None) -> dict[str, float | None]:
    low, high = (None, None) if spread is None else (value - spread, value + spread)
    return {"value": value, "low": low, "high": high, "deviation": spread}


def cell(clients: int, rate: float, failed: float = 0, **levels: Any) -> dict[str, Any]:
    return {
        "levels": {"batch": 1, **levels, "concurrency": clients},
        "figures": {
            "requests_per_second": figure(rate, 0.1),
            "tokens_per_second": figure(rate * 60),
            "average_milliseconds": figure(1000 * clients / rate),
            **{f"{e}_milliseconds": figure(50) for e in ("deviation", "p99")},
            "failed_percent": figure(failed),
        },
        "instances": ["2 x ml.g5.2xlarge"],
    }


DOCUMENT: dict[str, Any] = {
    "format": FORMAT,
    "model": "tiny",
    "environment": "production",
    "is_local": False,
    "stopped": None,
    "design": "mine",
    "trials": 5,
    "began_at": "2026-11-28T10:00:00+00:00",
    "served": {
        "image": "slipway/tensorrt:0123",
        "artifact": "ab" * 32,
        "settings": "0123456789ab",
        "address": "https://runtime.sagemaker.eu-west-1.amazonaws.com",
    },
    "cells": [cell(2, 10, input_tokens=256, output_tokens=64), cell(8, 30), cell(64, 31, failed=9)],
}


def test_loads_are_of_one_instance_and_failing_ones_are_left_out():
    found = measurement_of(DOCUMENT, "lmi")
    first, second = found.loads
    assert (found.instance_type, found.instance_count) == ("ml.g5.2xlarge", 2)
    assert first.model_dump(exclude_none=True) == {
        "concurrency": 1, "batch": 1, "input_tokens": 256, "output_tokens": 60,
        "requests_per_second": 5, "least_requests_per_second": 4.95,
        "most_requests_per_second": 5.05, "average_milliseconds": 200,
        "deviation_milliseconds": 50, "p99_milliseconds": 50,
    }  # fmt: skip
    assert (second.concurrency, second.input_tokens) == (4, None)
    assert Measurement.model_validate_json(found.render()) == found


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"is_local": True}, "the embedded AWS runs on this machine, and says nothing about AWS"),
        ({"stopped": "Ctrl-C"}, "the run ended early: Ctrl-C"),
        ({"served": None}, "the run does not say which image and artifact answered"),
        (
            {"served": DOCUMENT["served"] | {"address": "http://127.0.0.1:4566"}},
            "http://127.0.0.1:4566 is no address of AWS",
        ),
        (
            {"cells": [cell(1, 5), cell(1, 5) | {"instances": ["3 x ml.g5.2xlarge"]}]},
            "one number of instances of one type has to answer, and there were: "
            "2 x ml.g5.2xlarge; 3 x ml.g5.2xlarge",
        ),
        (
            {"cells": [cell(1, 5) | {"instances": ["1 x ml.g5.xlarge or ml.g5.2xlarge"]}]},
            "one number of instances of one type has to answer, and there were: "
            "1 x ml.g5.xlarge or ml.g5.2xlarge",
        ),
        (
            {"cells": [cell(1, 5, failed=2)]},
            "no load has a result with at most one failure in a hundred requests",
        ),
    ],
)
def test_a_run_that_says_nothing_about_aws_is_not_kept(changed, reason):
    [problem] = refusal(measurement_of, DOCUMENT | changed, "lmi").problems
    assert (problem.code, problem.message) == ("SW800", f"the run is not kept: {reason}")


def test_a_run_is_kept_if_the_files_are_what_it_measured(tmp_path, monkeypatch, slipway_command):
    root = write_project(tmp_path, {"tiny": config_text("tiny")}, published=["tiny"])
    monkeypatch.chdir(root)
    project = Project(root)
    plan = project.plan("tiny", project.environment("production"))
    document = deepcopy(DOCUMENT)
    document["served"] |= {
        "image": image_name(plan.image.uri),
        "artifact": plan.artifact.digest,
        "settings": settings_digest(plan.container_environment),
    }
    (root / SUMMARY).write_text(json.dumps(document))
    text = slipway_command.done("bench", "--keep", ".")
    assert text.endswith(
        "tiny.measured.json: measured on 2026-11-28 on ml.g5.2xlarge in production. Commit it "
        "beside the lock.\n"
    )
    kept = project.measurement("tiny")
    assert kept == measurement_of(document, "tensorrt")
    document["served"]["artifact"] = "cd" * 32
    (root / SUMMARY).write_text(json.dumps(document))
    errors = slipway_command.refused("bench", "--keep", ".")
    assert "the run is not kept: another artifact was measured (cdcd" in errors
    assert project.measurement("tiny") == kept
    assert "`--keep` measures nothing" in slipway_command.refused("bench", "tiny", "--keep", ".")
