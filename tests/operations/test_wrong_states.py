"""Stacks and endpoints that are broken, half there or between: what each command says of them.

The stacks are golden ones without the function, so that each is staged in a third of a second.
"""

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from slipway.cli.ui import command_words
from slipway.codes.code import Code
from slipway.operations.deployment import find_deployment, find_obstacle
from slipway.operations.deployment import told as words_of
from slipway.operations.fleet import find_fleet
from slipway.operations.leftovers import Leftover, find_leftovers
from slipway.operations.preflight.findings import parted
from slipway.operations.preflight.live import compare_stack
from slipway.operations.reviewing import review_deployed
from slipway.operations.status import find_status
from slipway.project import Project
from slipway.ui.app import make_app
from slipway.ui.looks import Looks
from tests.support.projects import DIGEST, LOCAL, config_text, write_project
from tests.support.slipway_stack import SlipwayStack, golden_template, slipway_stack
from tests.support.stacks import model_tags

pytestmark = pytest.mark.size("all")

KEPT = ("ExecutionRole", "HostingModel", "HostingFixedEndpointConfig", "HostingEndpoint")
ENDPOINT = "HostingEndpointD164256E"
TOKEN, PORT = "of-this-test", 8123
CAUSE = "cannot load the model: no such layer"


@dataclass(frozen=True)
class Told:
    """What the commands say of a model.

    Args:
        state: of its row in `slipway list`.
        reason: of the row, as far as it matters.
        verdict: the word of `slipway status`; None where nothing is deployed.
        says: what the verdict's sentences contain.
        preflight: the code of its problem.
        has_plots: whether there is an endpoint to draw.
    """

    state: str
    verdict: str
    says: tuple[str, ...]
    preflight: Code | None
    reason: str = ""
    has_plots: bool = True


STATES = {
    # Its container ignores SIGTERM for 36 s.
    "deleting": Told(
        "is being deleted", "CHANGING", ("it is being deleted",), Code.STACK_AT_REST
    ),
    "updating": Told(
        "changes", "CHANGING", ("a deployment is in progress",), Code.STACK_AT_REST
    ),
    "stuck": Told(
        "UPDATE_ROLLBACK_FAILED",
        "TROUBLE",
        ("Policy: ", CAUSE, "run `aws cloudformation continue-update-rollback --stack-name stuck"),
        Code.ROLLBACK_FAILED,
    ),
    "failed": Told(
        "CREATE_FAILED",
        "TROUBLE",
        (
            "the endpoint is Failed",
            CAUSE,
            "Read the log, then run `aws cloudformation delete-stack --stack-name failed-local`",
        ),
        Code.STACK_AT_REST,
    ),
    "half-gone": Told(
        "DELETE_FAILED",
        "TROUBLE",
        (
            "there is no endpoint: nothing is served",
            "the last deletion failed: the stack is DELETE_FAILED",
            "not empty",
            "run `aws cloudformation delete-stack --stack-name half-gone-local`. If the cause "
            "stays, add `--retain-resources Bucket`",
        ),
        Code.STACK_AT_REST,
        has_plots=False,
    ),
    "no-endpoint": Told(
        "nothing serves",
        "TROUBLE",
        ("there is no endpoint: nothing is served", "Destroy the stack and deploy it"),
        Code.ENDPOINT_DELETED,
        has_plots=False,
    ),
    "no-config": Told(
        "in service",
        "TROUBLE",
        ("its endpoint config HostingFixedEndpointConfig", "Make it again under this name"),
        Code.SERVED_DELETED,
        "its endpoint config HostingFixedEndpointConfig",
    ),
    "no-model": Told(
        "in service",
        "TROUBLE",
        ("its model HostingModel", "Make it again under this name"),
        Code.SERVED_DELETED,
        "its model HostingModel",
    ),
    "no-stack": Told(
        "in service",
        "TROUBLE",
        (
            "there is no stack of the endpoint no-stack-local",
            "`aws sagemaker delete-endpoint --endpoint-name no-stack-local`",
        ),
        Code.NO_STACK,
        "it has no stack",
    ),
}  # fmt: skip


def template(stack: SlipwayStack, name: str, mode: str, **others: Any) -> dict[str, Any]:
    """The resources that serve a model, and others."""
    text = golden_template("fixed-count").replace("fixed-count", name)
    found: dict[str, Any] = json.loads(text.replace(DIGEST, stack.publish(mode)))
    kept = {key: each for key, each in found["Resources"].items() if key.startswith(KEPT)}
    for each in kept.values():
        each["DependsOn"] = list(others) if each["Type"] == "AWS::SageMaker::Endpoint" else []
        for variant in each["Properties"].get("ProductionVariants", ()):
            variant["InitialInstanceCount"] = 1
    return {**found, "Resources": kept | others, "Rules": {}}


def policy(topic_arn: str) -> dict[str, Any]:
    document = {"Version": "2012-10-17", "Statement": []}
    properties = {"Topics": [topic_arn], "PolicyDocument": document}
    return {"Type": "AWS::SNS::TopicPolicy", "Properties": properties}


def stage(stack: SlipwayStack) -> None:
    """Brings each model into its state; those between two states come last."""
    stacks, sagemaker = stack.stacks, stack.stacks.client("sagemaker")
    sns, s3 = stacks.client("sns"), stacks.client("s3")

    def create(name: str, mode: str = "ok", **others: Any) -> str:
        options: dict[str, Any] = {"Tags": model_tags(name)}
        if name == "failed":
            options["OnFailure"] = "DO_NOTHING"
        return stacks.create(f"{name}-local", template(stack, name, mode, **others), **options)

    def config_of(name: str) -> str:
        return str(sagemaker.describe_endpoint(EndpointName=f"{name}-local")["EndpointConfigName"])

    topics = [sns.create_topic(Name=name)["TopicArn"] for name in ("first", "second")]
    create("stuck", Policy=policy(topics[0]))
    sns.delete_topic(TopicArn=topics[0])
    changed = template(stack, "stuck", "dead", Policy=policy(topics[1]))
    assert stacks.update("stuck-local", changed) == "UPDATE_ROLLBACK_FAILED"
    # The rollback is tried again in vain: its first try is over.
    stacks.api.continue_update_rollback(StackName="stuck-local")
    assert stacks.settled("stuck-local") == "UPDATE_ROLLBACK_FAILED"
    assert create("failed", "dead") == "CREATE_FAILED"
    create("half-gone", Bucket={"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "full"}})
    s3.put_object(Bucket="full", Key="x", Body=b"x")
    assert stacks.delete("half-gone-local") == "DELETE_FAILED"
    create("no-endpoint")
    sagemaker.delete_endpoint(EndpointName="no-endpoint-local")
    create("no-config")
    sagemaker.delete_endpoint_config(EndpointConfigName=config_of("no-config"))
    create("no-model")
    config = sagemaker.describe_endpoint_config(EndpointConfigName=config_of("no-model"))
    sagemaker.delete_model(ModelName=config["ProductionVariants"][0]["ModelName"])
    retained = template(stack, "no-stack", "ok")
    for each in retained["Resources"].values():
        each["DeletionPolicy"] = "Retain"
    stacks.create("no-stack-local", retained)
    assert stacks.delete("no-stack-local") == "DELETE_COMPLETE"
    create("updating")
    create("deleting", "stubborn")
    waiter = sagemaker.get_waiter("endpoint_deleted")
    waiter.wait(EndpointName="no-endpoint-local", WaiterConfig={"Delay": 1})
    stacks.start_update("updating-local", template(stack, "updating", "unready"))
    stacks.api.delete_stack(StackName="deleting-local")
    stacks.await_event("updating-local", ENDPOINT, "UPDATE_IN_PROGRESS")
    stacks.await_event("deleting-local", ENDPOINT, "DELETE_IN_PROGRESS")


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SlipwayStack, Project]]:
    texts = {name: config_text(name) for name in STATES}
    root = write_project(tmp_path_factory.mktemp("project"), texts, published=list(STATES))
    with slipway_stack(tmp_path_factory.mktemp("states"), time_scale=0.3) as stack:
        stage(stack)
        yield stack, Project(root)


def test_the_list_marks_each_and_says_why(
    staged: tuple[SlipwayStack, Project], monkeypatch: pytest.MonkeyPatch, slipway_command: Any
) -> None:
    stack, project = staged
    monkeypatch.chdir(project.root)
    monkeypatch.setattr("slipway.access.open_access", lambda *_: stack.access)
    code, text, errors = slipway_command("list", "--env", "local")
    assert (code, errors) == (0, "")
    *table, last = text.splitlines()
    wrong = sorted(name for name, told in STATES.items() if told.verdict == "TROUBLE")
    assert last == (f"trouble: {', '.join(wrong)}; `slipway status NAME --env ENV` says what to do")
    (line,) = (line for line in table if line.startswith("no-stack "))
    assert line.endswith("it has no stack")
    rows = {row.model: row for row in find_fleet(project, LOCAL, stack.access).rows}
    assert {name: row.state for name, row in rows.items()} == {
        name: told.state for name, told in sorted(STATES.items())
    }
    for name, told in STATES.items():
        assert rows[name].is_trouble == (told.verdict == "TROUBLE"), name
        assert rows[name].reason.startswith(told.reason), name
        assert bool(rows[name].reason) == bool(told.reason), name
    # What it serves is unknown, and not other files.
    assert rows["no-config"].serves_files is rows["no-model"].serves_files is None
    assert rows["no-stack"].serves_files is False


@pytest.mark.parametrize("name", STATES)
def test_each_command_says_what_is_wrong_and_what_to_do(
    name: str,
    staged: tuple[SlipwayStack, Project],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    slipway_command: Any,
) -> None:
    (stack, project), told = staged, STATES[name]
    monkeypatch.chdir(project.root)
    monkeypatch.setattr("slipway.access.open_access", lambda *_: stack.access)
    code, text, errors = slipway_command("status", name)
    said = " ".join(text.split())
    assert (code, errors) == (int(told.verdict == "TROUBLE"), "")
    assert said.startswith(told.verdict)
    for each in told.says:
        assert each in said
    found, problems = parted(compare_stack(project.plan(name, LOCAL), stack.access))
    assert (found, [each.code for each in problems]) == ([], [told.preflight])
    code, text, errors = slipway_command("dashboard", name, "--html", str(tmp_path / "page.html"))
    assert (code, told.verdict in text) == ((0, True) if told.has_plots else (1, False))
    assert told.has_plots or f"`slipway status {name} --env local`" in errors
    code, text, errors = slipway_command("logs", name)
    assert (code, "Traceback" in errors) == (0, False)
    looks = Looks(project.root, "local", lambda *_: stack.access)
    app = make_app(looks, command_words(), TOKEN, PORT)
    pages = TestClient(app, base_url=f"http://127.0.0.1:{PORT}")
    pages.get(f"/?token={TOKEN}")
    page = html.unescape(re.sub("<[^>]+>", " ", pages.get(f"/models/{name}/status").text))
    for each in (told.verdict, *told.says):
        assert each in page
    assert pages.get(f"/models/{name}/plots").text.count("<svg") == 4 * told.has_plots


def test_a_live_review_calls_none_of_them_new(staged: tuple[SlipwayStack, Project]) -> None:
    stack, project = staged
    names = [name for name in STATES if name.startswith(("half", "no-"))]
    found = review_deployed(project, names, stack.access, LOCAL)
    assert [each.model for each in found.models] == ["no-stack"]
    codes = [told.preflight for name, told in STATES.items() if name in names]
    assert [each.code for each in found.problems] == codes[:-1]


def test_a_failed_rollback_names_its_cause_and_the_resource_to_skip(
    staged: tuple[SlipwayStack, Project],
) -> None:
    access = staged[0].access
    stuck = find_deployment(access.client("cloudformation"), "stuck-local")
    assert stuck is not None
    assert [each.partition(":")[0] for each in stuck.failures] == ["Policy", ENDPOINT]
    obstacle = find_obstacle("stuck-local", stuck, has_endpoint=None, gone=None)
    assert obstacle is not None
    way_out = words_of(obstacle)
    assert way_out == (
        "the rollback failed, and nothing can be deployed before it is finished. Remove the "
        "cause, then run `aws cloudformation continue-update-rollback --stack-name "
        "stuck-local`. If that is not possible, add `--resources-to-skip Policy`, which leaves "
        "the resource as it is [SW709]"
    )
    assert find_status("stuck-local", access, plan=None, log_line_count=0).troubles() == [
        "the last deployment failed: the stack is UPDATE_ROLLBACK_FAILED",
        *stuck.failures,
        way_out,
    ]
    left = Leftover("stack", "stuck-local", f"UPDATE_ROLLBACK_FAILED: {way_out}")
    assert left in find_leftovers("stuck", LOCAL, access)


def test_each_way_out_is_one(staged: tuple[SlipwayStack, Project]) -> None:
    """The last test: it removes what the others look at."""
    stack, _ = staged
    stacks, sagemaker = stack.stacks, stack.stacks.client("sagemaker")
    api = stack.access.client("cloudformation")
    stacks.api.continue_update_rollback(StackName="stuck-local", ResourcesToSkip=["Policy"])
    assert stacks.settled("stuck-local") == "UPDATE_ROLLBACK_COMPLETE"
    undone = find_deployment(api, "stuck-local")
    assert undone is not None
    assert [each.partition(":")[0] for each in undone.failures] == [ENDPOINT]
    assert find_obstacle("stuck-local", undone, has_endpoint=None, gone=None) is None
    # SageMaker refuses an update without the configuration, and nothing else is wrong with it.
    config = sagemaker.describe_endpoint(EndpointName="no-config-local")["EndpointConfigName"]
    slow = template(stack, "no-config", "slow")
    (made,) = (each for each in slow["Resources"] if each.startswith("HostingFixedEndpointConfig"))
    (variant,) = slow["Resources"][made]["Properties"]["ProductionVariants"]
    model = stacks.physical_id("no-config-local", variant["ModelName"]["Fn::GetAtt"][0])
    assert stacks.update("no-config-local", slow) == "UPDATE_ROLLBACK_COMPLETE"
    # The ARN is in lower case.
    names = [each["ModelName"] for each in sagemaker.list_models()["Models"]]
    (name,) = (each for each in names if model.endswith(f"/{each.lower()}"))
    sagemaker.create_endpoint_config(
        EndpointConfigName=config.rpartition("/")[2],
        ProductionVariants=[variant | {"ModelName": name}],
    )
    assert stacks.update("no-config-local", slow) == "UPDATE_COMPLETE"
    status = find_status("no-config-local", stack.access, plan=None, log_line_count=0)
    assert status.troubles() == []
    # With another model, so that there is something to update.
    assert "ROLLBACK" in stacks.update("no-endpoint-local", template(stack, "no-endpoint", "slow"))
    assert stacks.delete("no-endpoint-local") == "DELETE_COMPLETE"
    assert stacks.delete("failed-local") == "DELETE_COMPLETE"
    assert stacks.delete("half-gone-local") == "DELETE_FAILED"
    assert stacks.delete("half-gone-local", RetainResources=["Bucket"]) == "DELETE_COMPLETE"
    again = template(stack, "no-stack", "ok")
    assert stacks.create("no-stack-local", again) == "ROLLBACK_COMPLETE"
    stacks.delete("no-stack-local")
    sagemaker.delete_endpoint(EndpointName="no-stack-local")
    waiter = sagemaker.get_waiter("endpoint_deleted")
    waiter.wait(EndpointName="no-stack-local", WaiterConfig={"Delay": 1})
    assert stacks.create("no-stack-local", again) == "CREATE_COMPLETE"
