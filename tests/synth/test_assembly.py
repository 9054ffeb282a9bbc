"""Which stacks an app holds; a bad model carries its report and blocks no other."""

import re
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from slipway.codes.code import Code
from slipway.config.sections.serving import PACKAGES
from slipway.errors import Kind, Problem, UserError
from slipway.policies import ready
from slipway.project import Project
from slipway.rights.pipeline import least_policy
from slipway.stacks.assembly import Selection
from tests.support.projects import LOCAL, config_text, messages, write_project
from tests.synth.assemblies import GOOD, Assembly, add_stacks, new_app, synthesised
from tests.synth.security import reports_of, validation_findings


def children(app: cdk.App) -> list[str]:
    return [child.node.id for child in app.node.children if isinstance(child, cdk.Stack)]


def test_every_model_has_a_stack_named_after_it_and_its_environment(assembly: Assembly):
    names = {name: stack["properties"]["stackName"] for name, stack in assembly.stacks().items()}
    assert names.pop("foundation") == "foundation-local"
    for model in (*GOOD, "bad", "fresh", "stale"):
        assert names.pop(model) == f"{model}-local"
    # What is left are the files with impossible names: theirs belong to nobody else.
    assert {"Not_A_Name.yaml", "foundation.yaml"} < set(names)
    assert len(names) == 3
    assert all(name.startswith("invalid-") for name in names.values())
    assert len(set(names.values())) == 3
    assert {stack["environment"] for stack in assembly.stacks().values()} == {
        "aws://123456789012/us-east-1"
    }


def test_a_bad_models_stack_is_empty_and_carries_the_whole_report(assembly: Assembly, project):
    (report,) = assembly.annotations("bad", "error")
    assert report.startswith("6 problems\n- model_configs/bad.yaml:6:3: model.parameters: ")
    for wording in (
        '"124439808" is not a whole number',
        "unknown field [SW106]\n    Did you mean `max_batch_size`?",
        '"ml.g4dn.xlarg" is not a known hosting instance type [SW201]\n    Did you mean',
        "the key is given twice; the first is on line 24",
        "59 is out of range: at least 60",
        "3601 is out of range: at most 3600",
    ):
        assert wording in report
    with pytest.raises(UserError) as caught:
        project.config("bad", "local")
    assert report == str(caught.value)
    assert "Resources" not in assembly.template("bad")


def test_the_models_beside_it_synthesise_without_an_error(assembly: Assembly):
    for model in GOOD:
        assert assembly.annotations(model, "error") == []
        assert len(assembly.template(model)["Resources"]) >= 6


def test_no_report_of_one_model_fails_the_synthesis_of_all(assembly: Assembly):
    # The CLI refuses every stack of an app whose validation report has a failure.
    reports = reports_of(assembly.directory)
    assert {name: each["conclusion"] for name, each in reports.items()} == {
        "CloudFormation Validate": "success"
    }
    assert validation_findings(assembly.directory) == []


@pytest.mark.parametrize(
    ("model", "state"),
    [
        ("fresh", "the sample was never published [SW404]"),
        ("stale", "the config changed after the sample was published [SW405]"),
    ],
)
def test_what_is_not_published_as_it_stands_carries_the_command(assembly, model, state):
    assert assembly.annotations(model, "error") == [
        f"1 problem\n- model_configs/{model}.yaml:16:3: artifacts.sample: {state}\n"
        f"    Run `slipway publish {model} --env local` and commit the lock file "
        f"model_configs/{model}.lock.json."
    ]
    assert "Resources" not in assembly.template(model)


def test_a_model_of_other_environments_has_no_stack_in_a_plain_app(tmp_path: Path):
    sample = "  sample:\n    path: samples/tiny\n"
    release = "  release:\n    path: build/tiny\n    target: sm75\n"
    models = {
        "here": config_text("here"),
        "elsewhere": config_text("elsewhere", (sample, "")),
        "nowhere": config_text("nowhere", (sample + release, "  size_gb: 1\n")),
    }
    root = tmp_path / "project"
    project = Project(write_project(root, models, published=["here"]))
    plain = synthesised(project, tmp_path / "plain")
    # What has no files at all is wrong everywhere.
    assert set(plain.stacks()) == {"foundation", "here", "nowhere"}
    assert "there is no model" in plain.annotations("nowhere", "error")[0]
    assert plain.annotations("foundation", "info") == [
        "Without a stack, having no sample for local: elsewhere. `-c models=NAME` shows what one "
        "of them needs."
    ]
    synthesised(project, tmp_path / "named", models=("elsewhere",))
    (report,) = Assembly(tmp_path / "named").annotations("elsewhere", "error")
    assert "environment `local` deploys the sample, and there is none" in report


def test_what_may_be_unpublished_synthesises_with_a_warning(project: Project, tmp_path: Path):
    found = synthesised(project, tmp_path, models=["fresh", "stale", "bad"], allow_unpublished=True)
    for model in ("fresh", "stale"):
        assert found.annotations(model, "error") == []
        assert any(
            "The artifact is not published" in text for text in found.annotations(model, "warning")
        )
        assert "/artifacts/unpublished/files/" in str(found.template(model))
    # It allows that and nothing else.
    assert len(found.annotations("bad", "error")) == 1


def test_a_model_that_a_policy_refuses_has_an_empty_stack_with_its_report(
    project: Project, tmp_path: Path
):
    judged = Project(project.root, (ready(required_tags=["owner"]),))
    found = synthesised(judged, tmp_path, models=[GOOD[0]])
    (report,) = found.annotations(GOOD[0], "error")
    assert "tags.owner: the project requires this tag, and the model has none [SW292]" in report
    assert "Resources" not in found.template(GOOD[0])


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        ("fixed", ["foundation", "fixed"]),
        ("fixed, scaled", ["foundation", "fixed", "scaled"]),
        ("f*", ["foundation", "fixed", "foundation.yaml", "fresh"]),
    ],
)
def test_models_are_selected_by_name_or_pattern(project, tmp_path, models, expected):
    app = new_app(tmp_path, models=models)
    add_stacks(app, project, Selection.from_context(app.node))
    assert children(app) == expected


def test_a_pattern_without_a_match_is_refused_with_the_nearest(project, tmp_path):
    app = new_app(tmp_path)
    with pytest.raises(UserError) as caught:
        add_stacks(app, project, Selection(models=["fixd", "scaled", "zzz*"]))
    assert messages(caught.value) == [
        "no model config matches 'fixd'", "no model config matches 'zzz*'",
    ]  # fmt: skip
    known = "model_configs/ has: Not_A_Name, bad, fixed, foundation, fresh, scaled, stale, 雪."
    assert [problem.remedy for problem in caught.value.problems] == [
        f"Did you mean `fixed`? {known}", known,
    ]  # fmt: skip


BUNDLING = "aws:cdk:bundling-stacks"


def test_a_model_without_a_file_has_a_stack_to_destroy_and_none_to_deploy(project, tmp_path):
    # What `cdk destroy` says of bundling, and what `cdk deploy`, `diff` and `synth` say.
    app = new_app(tmp_path, models="fixed,gone", **{BUNDLING: []})
    add_stacks(app, project, Selection.from_context(app.node))
    assert children(app) == ["foundation", "fixed", "gone"]
    stack = Assembly(Path(app.synth().directory)).stacks()["gone"]
    assert stack["properties"]["stackName"] == "gone-local"
    (report,) = Assembly(tmp_path).annotations("gone", "error")
    assert "no model config matches 'gone' [SW402]" in report
    # A pattern has no stack of its name.
    for bundling, models in (([], "gone*"), (["**"], "gone"), (["gone"], "gone"), (None, "gone")):
        app = new_app(tmp_path, models=models, **{BUNDLING: bundling})
        with pytest.raises(UserError, match="no model config matches 'gone"):
            add_stacks(app, project, Selection.from_context(app.node))


def test_the_context_is_read_once_and_strictly(tmp_path):
    def read(**context: Any) -> Selection:
        return Selection.from_context(new_app(tmp_path, **context).node)

    assert read() == Selection("local", ("*",), False)
    assert read(env="production", models="a,b*", **{"allow-unpublished": "true"}) == Selection(
        "production", ("a", "b*"), True
    )
    assert read(**{"allow-unpublished": True}).allow_unpublished
    with pytest.raises(UserError, match="`-c models=,` names no model"):
        read(models=",")
    with pytest.raises(UserError, match="`-c allow-unpublished=yes` is neither true nor false"):
        read(**{"allow-unpublished": "yes"})


@pytest.mark.parametrize(
    ("named", "count"),
    [(["fixed"], 1), (["fixed", "foundation"], 0), (["**"], 0), ([], 0)],
    ids=["exclusively", "with the foundation", "all", "none"],
)
def test_leaving_the_foundation_out_is_mentioned(project, tmp_path, named, count):
    app = new_app(tmp_path, **{"aws:cdk:bundling-stacks": named})
    add_stacks(app, project, Selection(models=["fixed"]))
    stack = app.node.find_child("fixed")
    notes = [entry.data for entry in stack.node.metadata if entry.type == "aws:cdk:info"]
    assert len(notes) == count
    assert all("run `cdk deploy foundation -c env=local` first" in note for note in notes)


def test_a_project_without_models_has_its_foundation(tmp_path):
    root = write_project(tmp_path, {})
    app = new_app(tmp_path / "out")
    add_stacks(app, Project(root), Selection())
    assert children(app) == ["foundation"]


def test_slipway_iam_names_the_bootstrap_roles_of_the_app_and_no_other(
    assembly: Assembly, project: Project
):
    """The CDK CLI assumes them."""
    text = "".join(
        path.read_text("utf-8")
        for path in assembly.directory.glob("*.json")
        if path.name == "manifest.json" or path.name.endswith(".assets.json")
    )
    named = re.findall(r'"(?:assumeRoleArn|arn)": "([^"]+)"', text)
    policy = least_policy(project.plan("fixed", LOCAL), LOCAL, [(None, None)])
    (deploy,) = (each for each in policy["Statement"] if each["Sid"] == "Deploy")
    assert {arn.replace("${AWS::Partition}", "aws") for arn in named} == set(deploy["Resource"])


def test_the_foundation_warns_of_a_package_that_cannot_be_used(tmp_path, monkeypatch):
    problem = Problem(Code.FAMILY_PACKAGE, Kind.STATE, "it does not load", "Correct it.")
    monkeypatch.setitem(PACKAGES.problems, "table", problem)
    synthesised(Project(write_project(tmp_path / "project", {})), tmp_path / "out")
    (warning,) = Assembly(tmp_path / "out").annotations("foundation", "warning")
    assert warning.startswith(str(problem))
