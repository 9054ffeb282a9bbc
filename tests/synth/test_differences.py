"""What a reviewer of an edit reads: how many resources of the template it changes.

A setting stands in one place of the template. The CDK CLI counts as this module does, and prints a
handful of lines.
"""

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.plans import plan_for
from tests.support.projects import model_config
from tests.support.slipway_stack import SCALING
from tests.support.starts import count_start
from tests.synth.assemblies import ROOT, of_plans

SCHEDULE = {
    "name": "workday",
    "at": "cron(0 7 ? * MON-FRI *)",
    "min_instance_count": 4,
    "max_instance_count": 8,
}
BASE: dict[str, dict[str, Any]] = {
    "endpoint": {"instances": ["ml.g5.xlarge"]},
    "autoscaling": {**SCALING, "schedules": [SCHEDULE]},
    "alarms": {"model_latency_p99_milliseconds": 600},
}
# The resources of each edit. More than one stand for settings of several, and a resource that is
# made anew counts twice: one goes, one comes.
EDITS: Mapping[str, tuple[dict[str, dict[str, Any] | None], int]] = {
    "nothing": ({}, 0),
    "max instances": ({"autoscaling": {"max_instance_count": 8}}, 1),
    "min instances": ({"autoscaling": {"min_instance_count": 3}}, 1),
    "target": ({"autoscaling": {"target_invocations_per_instance_per_minute": 700}}, 1),
    "cooldown": ({"autoscaling": {"scale_in_cooldown_seconds": 600}}, 1),
    "a schedule's minimum": (
        {"autoscaling": {"schedules": [SCHEDULE | {"min_instance_count": 5}]}},
        1,
    ),
    "another schedule": (
        {"autoscaling": {"schedules": [SCHEDULE, SCHEDULE | {"name": "later"}]}},
        1,
    ),
    "alarm threshold": ({"alarms": {"model_latency_p99_milliseconds": 400}}, 1),
    # The last step before the endpoint also waits for it, and the dashboard shows it.
    "another alarm": ({"alarms": {"overhead_latency_p99_milliseconds": 50}}, 3),
    "log retention": ({"endpoint": {"log_retention_days": 90}}, 1),
    "download time": ({"endpoint": {"model_data_download_timeout_seconds": 900}}, 1),
    "starting time": (
        {"endpoint": {"container_startup_health_check_timeout_seconds": 900}},
        1,
    ),
    "first count": ({"endpoint": {"instance_count": 3}}, 1),
    "batch size": ({"serving": {"max_batch_size": 4}}, 1),
    # The configuration, the policy, and what remembers the target.
    "instance type": ({"endpoint": {"instances": ["ml.g5.2xlarge"]}}, 5),
    # The policy, its alarm, and the right to point the alarm at it after a rollback.
    "steps": ({"autoscaling": {"steps": [{"from_times_target": 2, "add_instances": 2}]}}, 3),
    "deletion protected": ({"endpoint": {"termination_protection": True}}, 0),
    # The target and its policy go; the fleet's size follows the file; three calls are told.
    "no autoscaling": ({"autoscaling": None}, 9),
}
# Lines of the CDK CLI for its resources.
MOST_LINES = {
    "max instances": 4,
    "min instances": 4,
    "target": 5,
    "a schedule's minimum": 11,
    "instance type": 22,
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plans = {}
    for edit, (changes, _) in EDITS.items():
        sections: dict[str, Any] = dict(BASE)
        for section, change in changes.items():
            sections[section] = None if change is None else {**BASE.get(section, {}), **change}
        plans[_id(edit)] = plan_for(model_config("tiny", **sections))
    return of_plans(tmp_path_factory.mktemp("cdk.out"), plans).directory


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_changes_few_resources(directory: Path, edit: str) -> None:
    before, after = (
        json.loads(_template(directory, name).read_text("utf-8"))["Resources"]
        for name in ("nothing", edit)
    )
    changed = [name for name in {*before, *after} if before.get(name) != after.get(name)]
    assert len(changed) == EDITS[edit][1], sorted(changed)


@pytest.mark.cdk
@pytest.mark.size("all")
@pytest.mark.parametrize("edit", MOST_LINES)
def test_the_cdk_cli_prints_few_lines(directory: Path, edit: str) -> None:
    count_start("cdk")
    done = subprocess.run(
        [
            *(ROOT / "node_modules" / ".bin" / "cdk", "diff", _id(edit), "--no-color"),
            *("--app", directory, "--template", _template(directory, "nothing")),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    shown = done.stdout + done.stderr
    # Between the heading and the count of stacks.
    lines = shown.partition("Resources\n")[2].partition("\n\n")[0].splitlines()
    found = [line for line in lines if re.match(r"\[[-+~]\] \S+::", line)]
    assert len(found) == EDITS[edit][1], shown
    assert len(lines) <= MOST_LINES[edit], shown


def _template(directory: Path, edit: str) -> Path:
    return directory / f"{_id(edit)}.template.json"


def _id(edit: str) -> str:
    return re.sub("[^a-z]+", "-", edit)
