"""`defaults` of environments.yaml: laid under every model, with their places."""

import json
from pathlib import Path

from slipway.cli.plan_text import plan_rows
from slipway.planning.plan import DeploymentPlan
from slipway.planning.plan_json import plan_as_json
from slipway.project import Project
from tests.support.projects import ENVIRONMENTS, config_text, refusal, write_project
from tests.support.repositories import commit, make_repository

MODEL = "tiny"
DEFAULTS = """\
defaults:
  tags:
    team: search
    stage: all
  alarms:
    client_error_rate_percent: 20
    model_latency_p99_milliseconds: 900
"""
OF_PRODUCTION = """\
  defaults:
    tags: {stage: live}
    endpoint:
      log_retention_days: 365
"""
ALARMS = ("alarms:\n  model_latency_p99_milliseconds: 600\n", "")


def made(root: Path, *edits: tuple[str, str], environments: str = "", more: str = "") -> Project:
    text = environments or DEFAULTS + ENVIRONMENTS + OF_PRODUCTION
    write_project(root, {MODEL: config_text(MODEL, *edits) + more}, environments=text)
    return Project(root)


def planned(project: Project, environment: str = "production") -> DeploymentPlan:
    there = project.environment(environment)
    return project.plan(MODEL, there, allow_unpublished=True)


def report(project: Project, environment: str = "production") -> str:
    return str(refusal(planned, project, environment))


def origins(plan: DeploymentPlan) -> list[str]:
    return [value for label, value in plan_rows(plan) if label == "default"]


def test_a_model_takes_what_its_file_does_not_say(tmp_path):
    project = made(tmp_path)
    plan = planned(project)
    assert {key: plan.tags[key] for key in ("team", "stage")} == {"team": "search", "stage": "live"}
    assert plan.config.endpoint.log_retention_days == 365
    assert plan.config.alarms.client_error_rate_percent == 20
    assert plan.config.alarms.model_latency_p99_milliseconds == 600
    assert origins(plan) == [
        "tags.team: search (environments.yaml:3)",
        "alarms.client_error_rate_percent: 20 (environments.yaml:6)",
        "tags.stage: live (environments.yaml:17)",
        "endpoint.log_retention_days: 365 (environments.yaml:19)",
    ]
    assert origins(planned(project, "local")) == [
        "tags.team: search (environments.yaml:3)",
        "tags.stage: all (environments.yaml:4)",
        "alarms.client_error_rate_percent: 20 (environments.yaml:6)",
    ]
    shown = plan_as_json(plan)
    assert json.loads(json.dumps(shown))["defaults"][0] == [
        "tags.team", "search", {"path": "environments.yaml", "line": 3, "column": 5}
    ]  # fmt: skip
    assert "defaults" not in shown["environment"]


def test_the_models_own_values_come_first(tmp_path):
    more = (
        "  client_error_rate_percent: null\n"
        "tags: {team: ocr}\n"
        "environments:\n  production:\n    tags: {stage: mine}\n"
    )
    plan = planned(made(tmp_path, more=more))
    assert {key: plan.tags[key] for key in ("team", "stage")} == {"team": "ocr", "stage": "mine"}
    assert plan.config.alarms.client_error_rate_percent is None
    assert origins(plan) == ["endpoint.log_retention_days: 365 (environments.yaml:19)"]


def test_a_default_may_be_what_the_file_has_to_say(tmp_path):
    plan = planned(made(tmp_path, ALARMS))
    assert plan.config.alarms.model_latency_p99_milliseconds == 900


def test_what_is_missing_is_missing_in_the_models_file(tmp_path):
    text = "defaults: {alarms: {client_error_rate_percent: 5}}\n" + ENVIRONMENTS
    assert report(made(tmp_path, ALARMS, environments=text)).startswith(
        "1 problem\n- model_configs/tiny.yaml:1:1: alarms.model_latency_p99_milliseconds: "
        "required field is missing [SW107]\n"
    )


def test_a_default_that_a_model_refuses_has_its_place_and_names_the_model(tmp_path):
    text = "defaults:\n  alarms:\n    oldest_request_seconds: 60\n" + ENVIRONMENTS
    project = made(tmp_path, environments=text)
    found = report(project)
    assert found.startswith("1 problem\n- environments.yaml:3:5: alarms.oldest_request_seconds: ")
    assert found.endswith(" A value in model_configs/tiny.yaml comes before this default.")
    path = project.files[MODEL]
    path.write_text(path.read_text() + "  oldest_request_seconds: null\n")
    assert planned(project).config.alarms.oldest_request_seconds is None
    # Beside an invalid value too, so that one report has both.
    path.write_text(config_text(MODEL, ("instance_count: 2", "instance_count: 0")))
    assert "2 problems\n- environments.yaml:3:5: alarms.oldest_request" in report(project)


def test_tags_that_clash_with_a_models_are_reported_there(tmp_path):
    text = "defaults: {tags: {Team: search}}\n" + ENVIRONMENTS
    found = report(made(tmp_path, environments=text, more="tags: {team: ocr}\n"))
    assert found.startswith("1 problem\n- model_configs/tiny.yaml:30:1: tags: ")
    assert "are one tag" in found


def test_wrong_defaults_have_their_place_without_a_model(tmp_path):
    text = (
        "defaults:\n  tag: {a: b}\n  endpoint: {vpc: {}, log_retention_days: 91}\n"
        "  alarms: {model_latency_p99_milliseconds: 0}\n" + ENVIRONMENTS + "  defaults: 3\n"
    )
    write_project(tmp_path, {}, environments=text)
    caught = refusal(Project(tmp_path).environment, "production")
    found = [(str(each.location), each.code) for each in caught.problems]
    assert found == [
        ("environments.yaml:2:3", "SW106"),
        ("environments.yaml:3:14", "SW106"),
        ("environments.yaml:3:23", "SW211"),
        ("environments.yaml:4:12", "SW203"),
        ("environments.yaml:13:3", "SW108"),
    ]
    assert caught.problems[0].remedy.startswith("Did you mean `tags`? ")


def test_the_network_of_an_environment_is_told_as_a_default(tmp_path):
    network = "  network: {vpc_id: vpc-0a1b2c3d, subnet_ids: [subnet-0a1b2c3d]}\n"
    own = "  vpc: {subnet_ids: [subnet-4e5f6a7b]}\n  instance_count: 2\n"
    project = made(tmp_path, environments=ENVIRONMENTS + network)
    assert origins(planned(project)) == [
        "endpoint.vpc: the network of the environment (environments.yaml:9)"
    ]
    text = config_text(MODEL, ("  instance_count: 2\n", own))
    project.files[MODEL].write_text(text)
    assert origins(planned(project)) == []


def test_each_environment_is_checked_with_its_own_defaults(tmp_path):
    text = ENVIRONMENTS + "  defaults: {alarms: {oldest_request_seconds: 60}}\n"
    project = made(tmp_path, environments=text)
    names = ("local", "production")
    for order in (names, names[::-1]):
        found = project.check(MODEL, [project.environment(each) for each in order])
        assert [str(each.location) for each in found.problems] == ["environments.yaml:9:23"]


def test_a_review_names_the_defaults_that_a_model_takes(tmp_path, monkeypatch, slipway_command):
    make_repository(tmp_path)
    made(tmp_path, environments=DEFAULTS + ENVIRONMENTS)
    commit(tmp_path)
    text = DEFAULTS.replace("team: search", "team: ranking") + ENVIRONMENTS
    (tmp_path / "environments.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    printed = slipway_command.done("review", "--base", "HEAD")
    told = "default tags.team: search (environments.yaml) -> ranking (environments.yaml)"
    assert told in printed
    # A line further down is no change.
    (tmp_path / "environments.yaml").write_text(f"# a line\n{DEFAULTS}{ENVIRONMENTS}")
    assert slipway_command("review", "--base", "HEAD")[1] == "No model's deployment changes.\n"
