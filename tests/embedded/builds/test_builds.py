"""CodeBuild: a buildspec's commands run as a process, and the API tells what became of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.embedded.builds.conftest import GROUP, MAY_BUILD, PROJECT, Account, context, phases
from tests.support.processes import is_running
from tests.support.waiting import eventually

STORE = "PARAMETER_STORE"


def test_commands_run_in_one_shell_over_their_source(account: Account) -> None:
    source = account.put_source("one.zip", {"said.txt": "from the source\n", "inner/x": ""})
    build = account.done(
        {
            "install": ["cat said.txt", "cd inner", 'KEPT="kept over phases"'],
            "pre_build": ["pwd", 'echo "$KEPT, $PLAIN, $OWN, $AWS_REGION"'],
            "build": ["printf '%s\\n' 'two\nlines'", 'echo "$CODEBUILD_BUILD_SUCCEEDING"'],
            "post_build": ['test "$CODEBUILD_SRC_DIR/inner" = "$PWD" && echo here'],
        },
        sourceTypeOverride="S3",
        sourceLocationOverride=source,
        environmentVariablesOverride=[{"name": "OWN", "value": "of the build"}],
    )
    assert build["buildStatus"] == "SUCCEEDED"
    assert phases(build) == {
        **dict.fromkeys(
            [
                *("SUBMITTED", "QUEUED", "PROVISIONING", "DOWNLOAD_SOURCE", "INSTALL"),
                *("PRE_BUILD", "BUILD", "POST_BUILD", "UPLOAD_ARTIFACTS", "FINALIZING"),
            ],
            "SUCCEEDED",
        ),
        "COMPLETED": "",
    }
    said = account.output(build)
    assert said[0] == "from the source"
    assert said[1].endswith("/src/inner")
    assert said[2:] == [
        "kept over phases, of the project, of the build, us-east-1",
        *("two", "lines", "1", "here"),
    ]
    assert build["currentPhase"] == "COMPLETED"
    assert build["logs"]["groupName"] == GROUP
    assert build["endTime"] >= build["startTime"]
    lines = [line.split(" ", 3)[3] for line in account.log(build) if line.startswith("[Container]")]
    assert lines[:2] == ["Entering phase INSTALL", "Running command cat said.txt"]
    assert "Phase complete: INSTALL State: SUCCEEDED" in lines
    # Nothing of it is left.
    assert not Path(said[1]).exists()


@pytest.mark.parametrize(
    ("failing", "later"),
    [("install", {"INSTALL": "FAILED"}), ("build", {"BUILD": "FAILED", "POST_BUILD": "SUCCEEDED"})],
)
def test_a_failed_command_fails_its_phase(
    account: Account, failing: str, later: dict[str, str]
) -> None:
    commands = {
        "install": ["echo one"],
        "build": ["echo two"],
        "post_build": ['echo "succeeding: $CODEBUILD_BUILD_SUCCEEDING"'],
    }
    commands[failing] = ["sh -c 'echo broken >&2; exit 3'", "echo never"]
    build = account.done(commands)
    assert build["buildStatus"] == "FAILED"
    found = phases(build)
    assert {name: found[name] for name in later} == later
    assert "UPLOAD_ARTIFACTS" not in found
    assert ("BUILD" in found) is (failing == "build")
    assert context(build, failing.upper()) == (
        "COMMAND_EXECUTION_ERROR",
        "Error while executing command: sh -c 'echo broken >&2; exit 3'. Reason: exit status 3",
    )
    said = account.output(build)
    assert "broken" in said
    assert "never" not in said
    assert ("succeeding: 0" in said) is (failing == "build")


def test_a_command_that_ends_the_shell_fails_the_build(account: Account) -> None:
    build = account.done({"build": ["exit 7"], "post_build": ["echo never"]})
    assert build["buildStatus"] == "FAILED"
    assert context(build, "BUILD")[1] == "The shell ended with exit status 7"


def test_finally_runs_after_a_failure(account: Account) -> None:
    spec = {"version": 0.2, "phases": {"build": {"commands": ["false"], "finally": ["echo last"]}}}
    build = account.done({}, buildspecOverride=json.dumps(spec))
    assert build["buildStatus"] == "FAILED"
    assert account.output(build) == ["last"]


def test_a_stopped_build_ends_with_all_its_processes(account: Account) -> None:
    identifier = account.start({"build": ["sleep 300 & echo $! ; wait"]})
    eventually(lambda: account.output(account.describe(identifier)) != [])
    (child,) = account.output(account.describe(identifier))
    account.codebuild.stop_build(id=identifier)
    build = account.ended(identifier)
    assert build["buildStatus"] == "STOPPED"
    assert phases(build)["BUILD"] == "STOPPED"
    eventually(lambda: not is_running(int(child)))
    # As often as one likes.
    assert account.codebuild.stop_build(id=identifier)["build"]["buildStatus"] == "STOPPED"
    with pytest.raises(ClientError, match="Build publishing:none does not exist"):
        account.codebuild.stop_build(id="publishing:none")


def test_a_secret_reaches_the_commands_and_not_the_log(account: Account) -> None:
    secrets = account.client("secretsmanager")
    arn = secrets.create_secret(Name="allowed-token", SecretString="hf_worthless")["ARN"]
    keyed = secrets.create_secret(Name="allowed-json", SecretString='{"token": "hf_inner"}')["ARN"]
    build = account.done(
        {"build": ["echo $A $B", "printf '%s' \"$A\" | wc -c"]},
        environmentVariablesOverride=[
            {"name": "A", "value": arn, "type": "SECRETS_MANAGER"},
            {"name": "B", "value": f"{keyed}:token", "type": "SECRETS_MANAGER"},
        ],
    )
    assert [line.strip() for line in account.output(build)] == ["*** ***", "12"]
    shown = build["environment"]["environmentVariables"]
    assert {"name": "A", "value": arn, "type": "SECRETS_MANAGER"} in shown
    assert "hf_" not in json.dumps([build, account.log(build)], default=str)


def test_what_the_role_may_not_do_fails_the_build(account: Account) -> None:
    denied = account.client("secretsmanager").create_secret(Name="denied", SecretString="x")["ARN"]
    build = account.done(
        {"build": ["true"]},
        environmentVariablesOverride=[{"name": "A", "value": denied, "type": "SECRETS_MANAGER"}],
    )
    assert build["buildStatus"] == "FAILED"
    code, message = context(build, "DOWNLOAD_SOURCE")
    assert code == "CLIENT_ERROR"
    assert "is not authorized to perform: secretsmanager:GetSecretValue" in message
    source = account.put_source("two.zip", {})
    try:
        account.may(MAY_BUILD[1:])
        build = account.done(
            {"build": ["true"]}, sourceTypeOverride="S3", sourceLocationOverride=source
        )
        code, message = context(build, "DOWNLOAD_SOURCE")
        assert code == "CLIENT_ERROR"
        assert "is not authorized to perform: s3:GetObject" in message
        account.may(MAY_BUILD[:1])
        build = account.done({"build": ["true"]})
        code, message = context(build, "PROVISIONING")
        assert code == "ACCESS_DENIED"
        assert "not authorized to perform: logs:CreateLogStream" in message
        assert account.log(build) == []
    finally:
        account.may(MAY_BUILD)


@pytest.mark.size("all")
def test_pip_is_held_off_every_index(account: Account) -> None:
    build = account.done(
        {"install": ["python -m pip install --dry-run slipway-package-that-nobody-has"]}
    )
    assert build["buildStatus"] == "FAILED"
    assert any("No matching distribution found" in line for line in account.output(build))


def test_builds_are_listed_newest_first_and_a_token_starts_one(account: Account) -> None:
    first = account.start({"build": ["true"]})
    again = {"buildspecOverride": json.dumps({"version": 0.2}), "idempotencyToken": "t1"}
    second = account.start({}, **again)
    assert account.start({}, **again) == second
    with pytest.raises(ClientError, match="parameter mismatch"):
        account.start({}, **again, timeoutInMinutesOverride=6)
    listed = account.codebuild.list_builds_for_project(projectName=PROJECT)["ids"]
    assert listed[:2] == [second, first]
    assert account.codebuild.list_builds(sortOrder="ASCENDING")["ids"][-2:] == [first, second]
    found = account.codebuild.batch_get_builds(ids=[second, "publishing:none"])
    assert [each["id"] for each in found["builds"]] == [second]
    assert found["buildsNotFound"] == ["publishing:none"]
    account.ended(second)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"projectName": "none"}, "Project cannot be found: arn:aws:codebuild"),
        ({"privilegedModeOverride": True}, "does not emulate privilegedModeOverride of StartBuild"),
        ({"sourceTypeOverride": "GITHUB"}, "does not emulate sources of type GITHUB"),
        (
            {"environmentVariablesOverride": [{"name": "A", "value": "b", "type": STORE}]},
            "variables of type PARAMETER_STORE",
        ),
        ({"timeoutInMinutesOverride": 2161}, "less than or equal to 2160"),
    ],
)
def test_what_is_not_emulated_is_refused(
    account: Account, request_: dict[str, Any], message: str
) -> None:
    with pytest.raises(ClientError, match=message):
        account.codebuild.start_build(**{"projectName": PROJECT, **request_})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("{", "YAML_FILE_ERROR"),
        ("version: 0.1", "only version 0.2 runs here"),
        (
            "{version: 0.2, batch: {}, phases: {install: {runtime-versions: {java: 21}}}}",
            "does not run batch, the runtime java of a buildspec",
        ),
        ("{version: 0.2, phases: {build: {on-failure: CONTINUE}}}", "phases.build.on-failure"),
    ],
)
def test_a_buildspec_that_cannot_run_fails_the_build(
    account: Account, spec: str, message: str
) -> None:
    build = account.done({}, buildspecOverride=spec)
    assert build["buildStatus"] == "FAILED"
    code, said = context(build, "DOWNLOAD_SOURCE")
    assert code == "YAML_FILE_ERROR"
    assert message in said
