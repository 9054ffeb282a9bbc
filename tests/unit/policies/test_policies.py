"""Policies: what the ready ones refuse, where a problem points, and what faulty ones lead to."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slipway import policies
from slipway.errors import UserError
from slipway.policies import Plan, Problem, problem, ready
from slipway.project import Project
from tests.support.projects import ENVIRONMENTS, config_text, refusal, write_project
from tests.support.repositories import commit, make_repository

MODEL = "tiny"
CUSTOM = (
    "serving:\n  container: tensorrt\n  max_batch_size: 8\n  max_input_tokens: 64\n"
    "  max_new_tokens: 42\n  default_new_tokens: 12\n",
    "serving:\n  container: custom\n  image_uri: "
    "210987654321.dkr.ecr.eu-west-1.amazonaws.com/own:{}\n",
)


TAGGED = ("alarms:", "tags: {team: search}\nalarms:")
OPEN = ("  instance_count: 2", "  instance_count: 2\n  network_isolation: false")


def made(root: Path, of_all: str, *edits: tuple[str, str], of_production: str = "") -> Project:
    """Writes a project whose policies are given as YAML in one line."""
    text = f"policies: {of_all}\n{ENVIRONMENTS}"
    text += f"  policies: {of_production}\n" if of_production else ""
    write_project(root, {MODEL: config_text(MODEL, *edits)}, environments=text)
    return Project(root)


def report(project: Project, environment: str = "production") -> list[str]:
    """Returns the lines of the report on the model, without the heading and the remedies."""
    try:
        project.plan(MODEL, project.environment(environment), allow_unpublished=True)
    except UserError as error:
        return [line[2:] for line in str(error).splitlines() if line.startswith("- ")]
    return []


READY = [
    (
        "{max_cost_per_hour_usd: 1.641}",
        (),
        "model_configs/tiny.yaml:23:3: endpoint.instances: costs up to 1.642 USD an hour in "
        "`production`, and the project's limit is 1.641 [SW290]",
    ),
    (
        "{required_tags: [team, owner]}",
        (TAGGED,),
        "model_configs/tiny.yaml:28:1: tags.owner: the project requires this tag, and the model "
        "has none [SW292]",
    ),
    (
        '{allowed_instance_types: ["ml.g5.*", ml.g4dn.xlarge]}',
        (("instances: [ml.g4dn.xlarge]", "instances: [ml.g4dn.xlarge, ml.g4dn.2xlarge]"),),
        "model_configs/tiny.yaml:23:31: endpoint.instances[1]: ml.g4dn.2xlarge is not among the "
        "project's instance types in `production` [SW293]",
    ),
    (
        "{allowed_instance_types: [ml.g4dn.xlarge]}",
        (
            (
                "  instance_count: 2",
                "  instance_count: 2\n"
                "  shadow: {sampling_percent: 5, instances: [ml.g4dn.2xlarge]}",
            ),
        ),
        "model_configs/tiny.yaml:25:45: endpoint.shadow.instances[0]: ml.g4dn.2xlarge is not among "
        "the project's instance types in `production` [SW293]",
    ),
    (
        '{allowed_regions: ["us-*", eu-central-1]}',
        (),
        "environments.yaml:8:3: production.region: eu-west-1 is not among the project's regions "
        "[SW294]",
    ),
    (
        "{image_digests: true}",
        ((CUSTOM[0], CUSTOM[1].format("v1")),),
        "model_configs/tiny.yaml:10:3: serving.image_uri: "
        "210987654321.dkr.ecr.eu-west-1.amazonaws.com/own:v1 names the image by a tag, and the "
        "project requires a digest [SW295]",
    ),
    (
        "{network_isolation: true}",
        (OPEN,),
        "model_configs/tiny.yaml:25:3: endpoint.network_isolation: the container can open "
        "connections, and the project requires isolation [SW296]",
    ),
]


@pytest.mark.parametrize(("settings", "edits", "line"), READY)
def test_a_ready_policy_refuses_with_its_place(tmp_path, settings, edits, line):
    assert report(made(tmp_path, settings, *edits)) == [line]


@pytest.mark.parametrize(
    ("settings", "edits"),
    [
        ("{max_cost_per_hour_usd: 1.642}", ()),
        ("{required_tags: [team]}", (TAGGED,)),
        ('{allowed_instance_types: ["ml.g4dn.*"], allowed_regions: ["eu-*"]}', ()),
        ("{image_digests: true, network_isolation: true}", ()),
        ("{image_digests: true}", ((CUSTOM[0], CUSTOM[1].format("v1").replace(
            ":v1", f"@sha256:{'ab' * 32}")),)),
        ("{network_isolation: false}",
         (OPEN,)),
    ],
)  # fmt: skip
def test_a_ready_policy_lets_pass_what_it_does_not_refuse(tmp_path, settings, edits):
    assert report(made(tmp_path, settings, *edits)) == []


def test_autoscaling_counts_with_its_most_instances(tmp_path):
    scaling = (
        "autoscaling:\n  min_instance_count: 1\n  max_instance_count: 10\n"
        "  target_invocations_per_instance_per_minute: 600\nalarms:"
    )
    project = made(tmp_path, "{max_cost_per_hour_usd: 8}", ("alarms:", scaling))
    (line,) = report(project)
    assert "costs up to 8.21 USD an hour" in line


def test_an_unknown_price_is_never_within_a_limit(tmp_path):
    project = made(tmp_path, "{max_cost_per_hour_usd: 1000}")
    path = tmp_path / "environments.yaml"
    path.write_text(path.read_text().replace("eu-west-1", "me-central-1"))
    assert report(project) == [
        "model_configs/tiny.yaml:23:3: endpoint.instances: no price of ml.g4dn.xlarge in "
        "me-central-1 is known, and the project's limit is 1000 USD an hour [SW291]"
    ]


def test_wrong_names_and_values_have_their_place_and_a_hint(tmp_path):
    settings = (
        "{max_cost_per_hour: 3, required_tags: [aws:x], allowed_instance_types: [ml.g4dm.xlarge], "
        "allowed_regions: [], own: {Mine: here, other: nowhere}}"
    )
    project = made(tmp_path, settings, of_production="{max_cost_per_hour_usd: -1}")
    found = [
        (str(each.location), each.code, each.remedy)
        for each in refusal(project.environment, "production").problems
    ]
    assert [each[:2] for each in found] == [
        ("environments.yaml:1:12", "SW106"),
        ("environments.yaml:1:50", "SW212"),
        ("environments.yaml:1:83", "SW201"),
        ("environments.yaml:1:100", "SW204"),
        ("environments.yaml:1:127", "SW205"),
        ("environments.yaml:1:127", "SW205"),
        ("environments.yaml:1:139", "SW205"),
        ("environments.yaml:10:14", "SW203"),
    ]
    assert found[0][2].startswith("Did you mean `max_cost_per_hour_usd`? Allowed here: allowed_")
    assert found[2][2].startswith("Did you mean `ml.g4dn.xlarge`? ")


@pytest.mark.parametrize("key", ["policy", "polices", "default"])
def test_a_misspelt_key_is_no_environment_that_nobody_reads(tmp_path, key):
    project = made(tmp_path, "{required_tags: [team]}")
    path = tmp_path / "environments.yaml"
    path.write_text(path.read_text().replace("policies:", f"{key}:", 1))
    meant = "defaults" if key == "default" else "policies"
    (line,) = report(project)
    assert line == f"environments.yaml:1:1: {key}: is no environment: it has no `account` [SW106]"
    with pytest.raises(UserError, match=f"Did you mean `{meant}`"):
        project.environment("production")


def test_an_environments_policies_are_laid_over_those_for_all(tmp_path):
    (tmp_path / "laid_over.py").write_text(
        "from slipway.policies import problem\n"
        "def one(plan):\n    return [problem('one', 'r')]\n"
        "def two(plan):\n    return (problem('two', 'r') for _ in range(1))\n"
    )
    project = made(
        tmp_path,
        "{max_cost_per_hour_usd: 1, network_isolation: true, own: {first: 'laid_over:one'}}",
        OPEN,
        of_production="{max_cost_per_hour_usd: null, own: {second: 'laid_over:two'}}",
    )
    codes = [line.rpartition("[")[2] for line in report(project, "local")]
    assert sorted(codes) == ["SW290]", "SW296]", "policy first]"]
    codes = [line.rpartition("[")[2] for line in report(project)]
    assert sorted(codes) == ["SW296]", "policy first]", "policy second]"]


OWN = """\
import sys

from slipway.policies import Plan, problem


def found(plan: Plan):
    print("a policy may print")
    if plan.config["model"]["parameters"] < 1e9:
        yield problem(f"{plan.name} is small", "Take more.", "model", "parameters")
    yield problem("no account of ours", "Move.", "environment", "account")


def fails(plan):
    yield problem("before", "Stays.")
    print(plan.config["no such key"])


def leaves(plan):
    sys.exit(0)


def text(plan):
    return "wrong"


def nothing(plan):
    return None


def odd(plan):
    return [problem("fine", "Stays."), 3]


def takes_two(plan, other):
    return []


VALUE = 3
"""


def own(root: Path, module: str, **functions: str) -> Project:
    (root / f"{module}.py").write_text(OWN, "utf-8")
    return made(root, f"{{own: {json.dumps(functions)}}}")


def test_an_own_policy_blames_fields_of_both_files(tmp_path):
    project = own(tmp_path, "own_rules_a", mine="own_rules_a:found")
    assert report(project) == [
        "environments.yaml:7:3: production.account: no account of ours [policy mine]",
        "model_configs/tiny.yaml:6:3: model.parameters: tiny is small [policy mine]",
    ]


FOR_TINY = ", for tiny in `production`"
# Where no function of a module began.
IN_FILE = "environments.yaml:1:18: policies.own.p"


@pytest.mark.parametrize(
    ("function", "place", "reason"),
    [
        ("{}:fails", "{}.py:15:11", "KeyError: 'no such key'"),
        ("{}:leaves", "{}.py:19:5", "SystemExit: 0"),
        ("{}:text", IN_FILE, "TypeError: 'wrong' is no problem"),
        ("{}:nothing", IN_FILE, "TypeError: None is no problem"),
        ("{}:odd", IN_FILE, "TypeError: 3 is no problem"),
        (
            "{}:takes_two",
            IN_FILE,
            "TypeError: takes_two() missing 1 required positional argument: 'other'",
        ),
        ("{}:VALUE", IN_FILE, "TypeError: 'int' object is not callable"),
        ("{}:foud", IN_FILE, "ImportError: {} has no function `foud`. Did you mean `found`?"),
        ("not_there.at_all:f", IN_FILE, "ModuleNotFoundError: No module named 'not_there'"),
    ],
)
def test_a_faulty_policy_is_a_problem_with_a_place(tmp_path, function, place, reason):
    module = "own_rules_b"
    # Its file and line numbers stay, whichever project is the first to import it.
    project = own(tmp_path, module, p=function.format(module))
    (found,) = [each for each in report(project) if not each.endswith("[policy p]")]
    whom = "" if "Error: No module" in reason or "has no function" in reason else FOR_TINY
    line = f"{place}: the policy `p` ends with {reason}{whom} [SW297]".format(module)
    assert found.removeprefix("/").rpartition("/")[2] == line


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def f(plan:\n    return []\n", "SyntaxError: '(' was never closed (bad_{}.py, line 1)"),
        ("def f(plan):\n    return []\n\n1 / 0\n", "ZeroDivisionError: division by zero"),
        ("import no_such_package\n", "ModuleNotFoundError: No module named 'no_such_package'"),
    ],
)
def test_a_module_that_cannot_be_imported_is_a_problem(tmp_path, text, told, request):
    number = abs(hash(text)) % 10**6
    (tmp_path / f"bad_{number}.py").write_text(text)
    project = made(tmp_path, f"{{own: {{p: 'bad_{number}:f'}}}}")
    (line,) = report(project)
    assert line.endswith(f"the policy `p` ends with {told.format(number)} [SW297]")
    if "1 / 0" in text:
        assert line.startswith(f"bad_{number}.py:4:1: ")


def test_commands_end_with_1_and_name_the_policy(tmp_path, monkeypatch, slipway_command):
    own(tmp_path, "own_rules_c", mine="own_rules_c:found", bad="own_rules_c:fails")
    monkeypatch.chdir(tmp_path)
    error = slipway_command.refused("validate", "--sarif", "found.sarif")
    assert "own_rules_c.py:15:11: the policy `bad` ends with KeyError" in error
    assert "[policy mine]" in error
    assert "Traceback" not in error
    # Each environment has its own account; the model is small in both.
    assert error.count("tiny is small") == 1
    log = json.loads((tmp_path / "found.sarif").read_text())["runs"][0]
    rules = {rule["id"]: rule for rule in log["tool"]["driver"]["rules"]}
    assert list(rules) == ["SW297", "policy bad", "policy mine"]
    assert rules["policy mine"]["shortDescription"] == {"text": "The project's own policy mine"}
    assert {each["ruleId"] for each in log["results"]} == set(rules)
    code, printed, _ = slipway_command("plan", MODEL, "--allow-unpublished", "--json")
    assert code == 1
    assert "policy mine" in [each["code"] for each in json.loads(printed)["problems"]]
    # What is only looked at meets no policy.
    project = Project(tmp_path)
    assert project.unjudged.plan(MODEL, project.environment("local"), allow_unpublished=True)


def test_python_gives_policies_too(tmp_path):
    def named(plan: Plan) -> Iterator[Problem]:
        yield problem(f"{plan.max_usd_per_hour} {plan.instance_types}", "r")

    write_project(tmp_path, {MODEL: config_text(MODEL)}, environments=ENVIRONMENTS)
    project = Project(tmp_path, (ready(required_tags=["team"]), ready(image_digests=True), named))
    found = report(project)
    assert found[0].endswith("tags.team: the project requires this tag, and the model has none "
                             "[SW292]")  # fmt: skip
    assert found[1].endswith(
        "1.642 ('ml.g4dn.xlarge',) [policy test_python_gives_policies_too.<locals>.named]"
    )
    assert report(Project(tmp_path)) == []
    with pytest.raises(UserError, match=r"Did you mean `ml\.g5"):
        ready(allowed_instance_types=["ml.g5x.*"])
    with pytest.raises(TypeError, match="no ready policy: own"):
        ready(own={"p": "m:f"})  # type: ignore[call-arg]


def test_the_public_names_are_these_and_a_plan_for_a_test_is_made_by_hand():
    assert policies.__all__ == ["Plan", "Policy", "Problem", "problem", "ready"]
    assert all(hasattr(policies, name) for name in policies.__all__)
    values: dict[str, Any] = dict.fromkeys(Plan.__dataclass_fields__)
    plan = Plan(**values | {"region": "eu-west-1"})
    (found,) = list(ready(allowed_regions=["us-*"])(plan))
    assert found.field == ("environment", "region")


def test_a_review_runs_no_code_of_the_base(tmp_path, monkeypatch, slipway_command):
    root = tmp_path / "service"
    root.mkdir()
    make_repository(tmp_path)
    marker = tmp_path / "ran"
    spy = "def f(plan):\n    return []\n"
    (root / "spy_rules.py").write_text(f"open({str(marker)!r}, 'w').close()\n{spy}")
    made(root, "{own: {spy: 'spy_rules:f'}}")
    commit(tmp_path)
    (root / "spy_rules.py").write_text(spy)
    (root / "environments.yaml").write_text(
        f"policies: {{own: {{spy: 'spy_rules:f'}}, max_cost_per_hour_usd: 1}}\n{ENVIRONMENTS}"
    )
    monkeypatch.chdir(root)
    code, _, error = slipway_command("review", "--base", "HEAD")
    assert (code, "costs up to 1.642 USD an hour" in error) == (1, True)
    # A change that now meets the policy is compared with a base that did not.
    text = config_text(MODEL, ("  instance_count: 2", "  instance_count: 1"))
    (root / "model_configs" / f"{MODEL}.yaml").write_text(text)
    printed = slipway_command.done("review", "--base", "HEAD")
    assert "tiny in `production`\n  verdict" in printed
    assert "unknown" not in printed
    assert not marker.exists()


@pytest.mark.parametrize("name", ["policies", "defaults"])
def test_an_older_file_may_have_an_environment_of_the_name(tmp_path, name):
    text = ENVIRONMENTS.replace("production:", f"{name}:")
    write_project(tmp_path, {MODEL: config_text(MODEL)}, environments=text)
    project = Project(tmp_path)
    assert project.environment_names == ["local", name]
    assert report(project, name) == []


def test_an_environment_turns_each_policy_off(tmp_path):
    of_all = (
        "{max_cost_per_hour_usd: 1, required_tags: [team], allowed_instance_types: [ml.g5.xlarge], "
        "allowed_regions: [us-east-2], image_digests: true, network_isolation: true}"
    )
    off = (
        "{max_cost_per_hour_usd: null, required_tags: [], allowed_instance_types: null, "
        "allowed_regions: null, image_digests: false, network_isolation: false}"
    )
    edit = OPEN
    project = made(tmp_path, of_all, edit, of_production=off)
    assert len(report(project, "local")) == 5
    assert report(project) == []
