"""The stacks of models that share an endpoint, and the order in which they come and go."""

from pathlib import Path

import aws_cdk as cdk
import pytest

from slipway.project import Project
from slipway.stacks.assembly import Selection
from slipway.stacks.guest_stack import GuestStack
from tests.support.projects import write_project
from tests.support.shared_endpoints import guest_text, models
from tests.synth.assemblies import add_stacks, new_app, synthesised


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    root = tmp_path_factory.mktemp("shared")
    return Project(write_project(root, models(), published=models()))


def stacks_of(app: cdk.App) -> dict[str, cdk.Stack]:
    return {each.node.id: each for each in app.node.children if isinstance(each, cdk.Stack)}


def test_a_selection_has_the_host_and_its_guests(project: Project, tmp_path: Path) -> None:
    for selected in ("search", "titles"):
        app = new_app(tmp_path)
        add_stacks(app, project, Selection(models=(selected,)))
        stacks = stacks_of(app)
        assert list(stacks) == ["foundation", "search", "tags", "titles"]
        # `cdk deploy titles` deploys the host first; `cdk destroy search` destroys guests first.
        for name in ("tags", "titles"):
            assert isinstance(stacks[name], GuestStack)
            assert stacks["search"] in stacks[name].dependencies
        assert stacks["search"].dependencies == [stacks["foundation"]]
    app = new_app(tmp_path)
    add_stacks(app, project, Selection(models=("alone",)))
    assert list(stacks_of(app)) == ["foundation", "alone"]


def test_a_guest_with_problems_goes_before_its_host(tmp_path: Path) -> None:
    """Its copies may run. `cdk destroy search` would otherwise leave them."""
    texts = dict(models())
    texts["titles"] = texts["titles"].replace("max_copies: 6", "max_copies: six")
    project = Project(write_project(tmp_path, texts, published=["search", "tags"]))
    app = new_app(tmp_path / "out")
    add_stacks(app, project, Selection(models=("search",)))
    stacks = stacks_of(app)
    assert list(stacks) == ["foundation", "search", "tags", "titles"]
    assert not isinstance(stacks["titles"], GuestStack)
    assert stacks["search"] in stacks["titles"].dependencies


def test_models_that_name_each_other_are_reported(tmp_path: Path) -> None:
    texts = {"one": guest_text("one", host="two"), "two": guest_text("two", host="one")}
    project = Project(write_project(tmp_path, texts, published=texts))
    app = new_app(tmp_path / "out")
    add_stacks(app, project, Selection(models=("one",)))
    assert list(stacks_of(app)) == ["foundation", "one", "two"]
    app.synth()


def test_the_models_of_guests_have_the_role_of_their_host(project: Project, tmp_path: Path) -> None:
    assembly = synthesised(project, tmp_path, models=("search",))
    role, _ = assembly.named("search", "AWS::IAM::Role", "ExecutionRole")
    written = assembly.only("search", "AWS::SSM::Parameter")["Properties"]
    assert written["Value"] == {"Fn::GetAtt": [role, "Arn"]}
    for name in ("tags", "titles"):
        assert assembly.resources(name, "AWS::IAM::Role") == {}
        model = assembly.only(name, "AWS::SageMaker::Model")["Properties"]
        read = assembly.template(name)["Parameters"][model["ExecutionRoleArn"]["Ref"]]
        assert (
            read["Default"] == written["Name"] == "/slipway/local/models/search/execution-role-arn"
        )
