"""What `fit`, `simulate` and `cost` make of a kept measurement, and of one of something else."""

import math
from typing import Any

import pytest

from slipway.planning.plan import DeploymentPlan
from slipway.project import Project
from slipway.sizing.measured import Measurement, image_name, settings_digest
from slipway.sizing.performance import correction_for
from slipway.sizing.ranking import Goal
from slipway.sizing.traffic import Traffic
from tests.support.pages import ROOT
from tests.support.projects import config_text, write_project
from tests.unit.cli.first_configs import ENVIRONMENTS


def load(concurrency: float, seconds: float, **changed: Any) -> dict[str, Any]:
    """Returns a load of a closed loop whose requests take so many seconds."""
    rate = concurrency / seconds
    return {
        "concurrency": concurrency,
        "input_tokens": 256,
        "output_tokens": 64,
        "requests_per_second": rate,
        "least_requests_per_second": rate * 0.98,
        "most_requests_per_second": rate * 1.02,
        "average_milliseconds": 1000 * seconds,
        "deviation_milliseconds": 250 * seconds,
        "p99_milliseconds": 2000 * seconds,
    } | changed


def measurement_of(plan: DeploymentPlan, *loads: dict[str, Any], **changed: Any) -> Measurement:
    content = {
        "measured_on": "2026-11-28",
        "environment": plan.environment.name,
        "instance_type": plan.variants[0].instance_type,
        "instance_count": 1,
        "container": plan.config.serving.container,
        "image": image_name(plan.image.uri),
        "artifact": plan.artifact.digest,
        "settings": settings_digest(plan.container_environment),
        "design": "text-generation",
        "trials": 5,
        "loads": loads,
    }
    return Measurement.model_validate(content | changed)


MODEL = "qwen3-8b"
GOAL = ("--rate", "0.5", "--p99", "60000", "--tokens", "256,64")
TYPES = ("--instances", "ml.g5.2xlarge,ml.g5.12xlarge,ml.g6e.xlarge")
SIMULATE = ("simulate", MODEL, "--env", "ci", "--traffic", "constant:rate=0.2,hours=0.2")
# The least with 95 % of the highest throughput is 8.
LOADS = (load(1, 2.0), load(8, 4.0), load(16, 7.9))


@pytest.fixture
def project(tmp_path, monkeypatch):
    models = {MODEL: (ROOT / "model_configs" / f"{MODEL}.yaml").read_text("utf-8")}
    models["tiny"] = config_text("tiny")
    monkeypatch.chdir(write_project(tmp_path, models, environments=ENVIRONMENTS))
    return Project(tmp_path)


@pytest.fixture
def keep(project):
    def kept(*loads, name=MODEL, **changed):
        plan = project.plan(name, project.environment("ci"), allow_unpublished=True)
        measurement = measurement_of(plan, *loads, **changed)
        project.measurement_path(name).write_text(measurement.render(), "utf-8")

    return kept


def fitted(slipway_command):
    found = slipway_command.document("fit", MODEL, *GOAL, *TYPES)
    return {each["instance_type"]: each for each in found["ranked"]}, found["notes"]


def test_the_file_is_no_config_and_the_same_text_each_time(project, keep):
    names = list(project.files)
    keep(*LOADS)
    assert list(Project(project.root).files) == names
    text = project.measurement_path(MODEL).read_text("utf-8")
    assert project.measurement(MODEL).render() == text
    assert not project.measurement_path(MODEL).match("*.lock.json")


def test_a_measurement_corrects_types_with_its_gpu_alone(slipway_command, keep):
    before, notes = fitted(slipway_command)
    assert notes == []
    alone = before["ml.g5.2xlarge"]["levels"][0]["request_seconds"]["expected"]
    keep(load(1, 1.5 * alone, input_tokens=256, output_tokens=64))
    after, notes = fitted(slipway_command)
    assert notes == [
        "Types with NVIDIA A10G are corrected by what was measured on 2026-11-28 on ml.g5.2xlarge "
        "in ci."
    ]
    own = after["ml.g5.2xlarge"]["levels"][0]["request_seconds"]
    # vLLM has kept the bench's prompts, and the goal's are computed: so the factor is above 1.5.
    factor = own["expected"] / alone
    assert 1.5 < factor < 1.7
    assert after["ml.g5.2xlarge"]["basis"] == "corrected by a measurement"
    assert own["high"] / own["expected"] == pytest.approx(math.exp(0.132), rel=1e-3)
    other = after["ml.g5.12xlarge"]["levels"][0]["request_seconds"]
    assert other["expected"] == pytest.approx(
        factor * before["ml.g5.12xlarge"]["levels"][0]["request_seconds"]["expected"]
    )
    assert own["high"] / own["expected"] < other["high"] / other["expected"] < math.exp(0.2)
    assert after["ml.g6e.xlarge"] == before["ml.g6e.xlarge"]


def test_clients_of_an_instance_are_shared_by_its_copies(project):
    plan = project.plan(MODEL, project.environment("ci"), allow_unpublished=True)
    goal = Goal(Traffic(0, 0, ""), math.inf, 256, 64, "us-east-1")
    # Four GPUs, and a copy on each.
    kept = measurement_of(plan, load(1, 2.0), load(32, 4.0), instance_type="ml.g5.12xlarge")
    found = correction_for(plan, kept, goal)
    assert [each for each, _ in found.factors] == [1, 8]
    assert found.spread == pytest.approx(math.log(1.02 / 0.98) / 2)


@pytest.mark.parametrize("changed", [{"input_tokens": None}, {"output_tokens": None}, {"batch": 2}])
def test_loads_of_unknown_tokens_correct_nothing(slipway_command, keep, changed):
    keep(load(1, 2.0, **changed))
    assert fitted(slipway_command)[1] == [
        "The kept measurement is not used: its loads do not say the tokens of prompts and answers."
    ]


def test_a_measurement_of_something_else_is_told_and_not_used(keep, slipway_command):
    before, _ = fitted(slipway_command)
    keep(*LOADS, image="djl-inference:0.35.0", artifact="cd" * 32, settings="0123456789ab")
    reason = "another image was measured (djl-inference:0.35.0, now djl-inference:0.36.0-"
    after, notes = fitted(slipway_command)
    assert after == before
    assert notes[0].startswith(f"The kept measurement is not used: {reason}")
    [bill] = slipway_command.document("cost", MODEL)["bills"]
    assert bill["per_million"]["basis"] == "predicted"
    first, second, third = bill["per_million"]["reasons"]
    assert first.startswith(reason)
    assert second.startswith("another artifact was measured (cdcd")
    assert third.startswith("other variables were measured (0123456789ab, now ")
    first = slipway_command.done(*SIMULATE).splitlines()[0]
    assert "predicted for prompts of 1024" in first
    assert f"(measurement not used: {reason}" in first


def test_another_type_is_no_cost_and_corrects_the_prediction(slipway_command, keep):
    keep(*LOADS, instance_type="ml.g5.4xlarge")
    [bill] = slipway_command.document("cost", MODEL)["bills"]
    found = bill["per_million"]
    assert found["basis"] == "predicted"
    assert "corrected by a measurement" in found["origin"]
    assert found["reasons"] == ["ml.g5.4xlarge was measured, and the plan has ml.g5.2xlarge"]


def test_a_bill_has_what_a_million_costs_as_measured(keep, slipway_command):
    keep(*LOADS)
    [bill] = slipway_command.document("cost", MODEL)["bills"]
    found = bill["per_million"]
    [price] = bill["cost"]["hourly"]
    # Eight clients, 4 s each: 2 requests a second of 64 tokens.
    usd = price["usd"] / (2 * 3600) * 1e6
    assert found["requests"]["expected"] == pytest.approx(usd, rel=1e-4)
    assert found["requests"]["high"] == pytest.approx(usd / 0.98, rel=1e-4)
    assert found["tokens"]["expected"] == pytest.approx(usd / 64, rel=1e-3)
    assert (found["basis"], found["reasons"]) == ("measured", [])
    _, text, _ = slipway_command("cost", MODEL)
    rows = dict(line.strip().split("  ", 1) for line in text.splitlines()[1:])
    assert rows["a million requests"].strip() == "211.11 [206.97 to 215.42] USD while busy"
    assert rows["that is"].strip() == ("measured on 2026-11-28 on ml.g5.2xlarge in ci, 8 at once")


def test_a_bill_says_what_is_missing(project, slipway_command):
    [bill] = slipway_command.document("cost", "tiny", "--env", "ci")["bills"]
    assert bill["per_million"] == {
        "basis": None, "origin": "", "requests": None, "tokens": None,
        "reasons": [
            "no measurement is kept",
            "nothing can be predicted: no measurement is of the container `tensorrt`",
        ],
    }  # fmt: skip


def test_a_simulation_takes_its_times_from_the_measurement(slipway_command, keep):
    keep(*LOADS)
    found = slipway_command.document(*SIMULATE)
    assert found["service"] == {
        "mean_seconds": 4.0, "variation": 0.25, "concurrency": 8,
        "origin": "measured on 2026-11-28 on ml.g5.2xlarge in ci, 8 at once",
    }  # fmt: skip
    given = slipway_command.document(*SIMULATE, "--service-time", "4000,0.25", "--concurrency", "8")
    assert given["service"]["origin"] == "given"
    assert given["p99_seconds"] == found["p99_seconds"]


def test_missing_times_and_a_damaged_measurement_are_told(project, slipway_command):
    arguments = ("simulate", "tiny", "--env", "ci", "--traffic", "constant:rate=1,hours=1")
    errors = slipway_command.refused(*arguments)
    assert "no service time is known: no measurement is kept; nothing can be predicted" in errors
    assert "Give `--service-time MS[,CV]`" in errors
    errors = slipway_command.refused(*arguments, "--concurrency", "2")
    assert "`--concurrency` belongs to `--service-time`" in errors
    project.measurement_path(MODEL).write_text('{"version": 1}', "utf-8")
    errors = slipway_command.refused("cost", MODEL)
    assert f"model_configs/{MODEL}.measured.json: not a measurement file: measured_on: " in errors
    assert "[SW801]" in errors
