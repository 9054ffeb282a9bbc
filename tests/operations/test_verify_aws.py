"""`make verify-aws` where something goes wrong: what was made is destroyed, and told.

The stacks are real ones of the embedded AWS. The commands that would deploy them are stand-ins,
since what is tested is what comes after them.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from slipway.embedded_aws.identity import ACCESS_KEY_ID
from tests.support.accounts import SECRET_ACCESS_KEY
from tests.support.images import put_image
from tests.support.stacks import Stacks, account_stacks
from tools.verify_aws import __main__ as program
from tools.verify_aws import account as accounts
from tools.verify_aws.commands import CommandError
from tools.verify_aws.project import Target
from tools.verify_aws.report import STEPS

TARGET = Target("123456789012", "us-east-1", "ml.m5.large")
BUCKET = TARGET.environment.artifact_bucket
KEY_PARAMETER = TARGET.environment.parameter_prefix + "artifact-key-arn"
# The rest of a foundation is of no importance here.
FOUNDATION = {
    "Resources": {
        "Key": {
            "Type": "AWS::KMS::Key",
            "DeletionPolicy": "Retain",
            "Properties": {"KeyPolicy": {"Version": "2012-10-17", "Statement": []}},
        },
        "Parameter": {
            "Type": "AWS::SSM::Parameter",
            "Properties": {
                "Name": KEY_PARAMETER,
                "Type": "String",
                "Value": {"Fn::GetAtt": ["Key", "Arn"]},
            },
        },
    }
}
ENDPOINT = {
    "Resources": {
        "Alarm": {
            "Type": "AWS::SSM::Parameter",
            "Properties": {"Name": "/made-with-the-endpoint", "Type": "String", "Value": "x"},
        }
    }
}
Action = Callable[[], str]


class Account:
    """An account with a stand-in for each command.

    Attributes:
        commands: what was run, in order.
        instead: what a command does instead, by its first two or three words.
    """

    def __init__(self, stacks: Stacks) -> None:
        self.stacks = stacks
        self.commands: list[str] = []
        self.instead: dict[str, Action] = {}

    def ends(self, name: str, error: BaseException, *, done: bool = False) -> None:
        """Has a command end with an error, after it did what it usually does, or before."""

        def end() -> str:
            if done:
                self.usually(name)
            raise error

        self.instead[name] = end

    def make_commands(self, *_: object, **__: object) -> Any:
        return self.run

    def run(self, *command: str, seconds: float) -> str:
        assert seconds > 0
        name = " ".join(command[: 3 if command[0] == "cdk" else 2])
        self.commands.append(name)
        if name in self.instead:
            return self.instead[name]()
        return self.usually(name)

    def usually(self, name: str) -> str:
        made = {
            "cdk deploy foundation": (TARGET.foundation, FOUNDATION),
            "cdk deploy verify-aws": (TARGET.endpoint, ENDPOINT),
        }
        deleted = {
            "cdk destroy verify-aws": TARGET.endpoint,
            "cdk destroy verify-queue": TARGET.queue_endpoint,
            "cdk destroy foundation": TARGET.foundation,
        }
        if name in made:
            self.stacks.create(*made[name])
        elif name in deleted:
            self.stacks.delete(deleted[name])
        return '{"checks": []}'

    def stack_names(self) -> set[str]:
        found = self.stacks.api.describe_stacks()["Stacks"]
        return {stack["StackName"] for stack in found}


@pytest.fixture(scope="module")
def server_stacks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stacks]:
    with account_stacks(tmp_path_factory.mktemp("embedded-aws")) as account:
        account.client("ssm").put_parameter(
            Name="/cdk-bootstrap/hnb659fds/version", Value="30", Type="String"
        )
        put_image(account.client("ecr"), "djl-inference", "0.36.0-cpu-full")
        yield account


@pytest.fixture
def account(server_stacks: Stacks, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in {
        "AWS_ENDPOINT_URL": server_stacks.aws.connection.url,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY,
        "AWS_REGION": TARGET.region,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        # Service Quotas is a service that moto answers with an error of its own.
        "AWS_MAX_ATTEMPTS": "1",
    }.items():
        monkeypatch.setenv(name, value)
    # The signals are the test run's own.
    monkeypatch.setattr(program, "stop_on_signals", lambda: None)
    found = Account(server_stacks)
    yield found
    for name in found.stack_names():
        server_stacks.delete(name)


@pytest.fixture
def verify(
    account: Account, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[[], tuple[dict[str, Any], str]]:
    """Runs the command, which ends with 1; returns its report and what it told."""

    def run() -> tuple[dict[str, Any], str]:
        arguments = ["--yes", "--json", "--folder", str(tmp_path)]
        assert program.main(arguments, make_commands=account.make_commands) == 1
        output = capsys.readouterr()
        assert output.out == (tmp_path / "report.json").read_text("utf-8")
        return json.loads(output.out), output.err

    return run


Verify = Callable[[], tuple[dict[str, Any], str]]


def outcomes(report: dict[str, Any]) -> list[tuple[str, str]]:
    return [(stage["name"], stage["outcome"]) for stage in report["stages"]]


def kinds(report: dict[str, Any]) -> list[str]:
    return [item["kind"] for item in report["left"]]


REFUSED = CommandError("`cdk deploy verify-aws` ended with 1\n    no instance of ml.m5.large")
DESTROYED = [("destroy verify-aws", "ok"), ("destroy foundation", "ok")]


@pytest.mark.size("all")
def test_a_deploy_that_fails_is_told_and_destroyed(account: Account, verify: Verify) -> None:
    account.ends("cdk deploy verify-aws", REFUSED, done=True)
    last = CommandError("`slipway status` ended with 1\n    TROUBLE  the container's last lines")
    account.ends("slipway status", last)
    report, told = verify()
    assert report["result"] == "failed"
    assert outcomes(report)[-3:] == [("deploy endpoint", "failed"), *DESTROYED]
    assert "no instance of ml.m5.large" in told
    assert "TROUBLE  the container's last lines" in told
    assert account.stack_names() == set()
    # The key is the foundation's, whose template retains it.
    assert kinds(report) == ["KMS key", "CDK assets"]
    key_id = report["left"][0]["name"].rpartition("/")[2]
    assert f"$ aws kms schedule-key-deletion --key-id {key_id} --pending-window-in-days 7" in told
    assert TARGET.account not in json.dumps(report)


def test_an_interrupt_destroys_what_was_made(account: Account, verify: Verify) -> None:
    account.ends("cdk deploy verify-aws", KeyboardInterrupt(), done=True)
    report, told = verify()
    assert outcomes(report)[-3:] == [("deploy endpoint", "interrupted"), *DESTROYED]
    assert "What was made is destroyed now" in told
    assert account.stack_names() == set()


@pytest.mark.size("all")
def test_a_bug_of_the_program_destroys_what_was_made_too(
    account: Account, verify: Verify, capsys: pytest.CaptureFixture[str]
) -> None:
    account.ends("slipway publish", ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        verify()
    assert account.stack_names() == set()
    assert "aws kms schedule-key-deletion" in capsys.readouterr().err


@pytest.mark.size("all")
def test_a_second_interrupt_leaves_and_says_what_that_means(
    account: Account, verify: Verify
) -> None:
    account.ends("slipway publish", KeyboardInterrupt())
    account.ends("cdk destroy foundation", KeyboardInterrupt())
    report, told = verify()
    assert report["left"] is None
    assert "What is left is unknown. Run `make verify-aws` again to remove and list it." in told
    assert account.stack_names() == {TARGET.foundation}


@pytest.mark.size("all")
def test_a_run_begins_with_what_a_killed_one_left(account: Account, verify: Verify) -> None:
    account.usually("cdk deploy foundation")
    account.usually("cdk deploy verify-aws")
    account.ends("slipway publish", REFUSED)
    report, told = verify()
    assert (
        f"An earlier run left {TARGET.endpoint} and {TARGET.foundation}, destroyed first." in told
    )
    assert outcomes(report) == [
        *DESTROYED, ("deploy foundation", "ok"), ("publish", "failed"), *DESTROYED,
    ]  # fmt: skip
    assert report["stages"][4]["detail"] == f"{TARGET.endpoint} was not there"


def test_a_run_destroys_what_a_killed_deep_one_left(account: Account, verify: Verify) -> None:
    account.usually("cdk deploy foundation")
    account.stacks.create(TARGET.queue_endpoint, ENDPOINT)
    s3 = account.stacks.client("s3")
    s3.create_bucket(Bucket=TARGET.queue_bucket)
    s3.put_object(Bucket=TARGET.queue_bucket, Key="requests/fails.json", Body=b"{}")
    account.ends("slipway publish", REFUSED)
    report, told = verify()
    assert f"An earlier run left {TARGET.queue_endpoint} and {TARGET.foundation}, destroyed" in told
    assert outcomes(report)[:4] == [
        ("destroy verify-queue", "ok"), *DESTROYED, ("remove the requests", "ok"),
    ]  # fmt: skip
    assert account.stack_names() == set()
    assert TARGET.queue_bucket not in {each["Name"] for each in s3.list_buckets()["Buckets"]}


@pytest.mark.size("all")
def test_a_deep_run_cleans_up_after_questions_without_an_answer(
    account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The endpoint's stages pass, and nothing that the questions look at is there."""
    monkeypatch.setattr(program.Life, "stages", lambda _: iter([("deploy", deploys)]))

    def deploys() -> str:
        account.usually("cdk deploy verify-aws")
        return "deployed"

    account.ends("slipway publish", REFUSED)
    arguments = ["--deep", "--yes", "--folder", str(tmp_path)]
    assert program.main(arguments, make_commands=account.make_commands) == 1
    assert account.stack_names() == set()
    answers = (tmp_path / "deep.md").read_text("utf-8").splitlines()
    assert len(answers) == len(STEPS)
    s3 = account.stacks.client("s3")
    assert TARGET.queue_bucket not in {each["Name"] for each in s3.list_buckets()["Buckets"]}
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    failed = [name for name, outcome in outcomes(report) if outcome == "failed"]
    assert failed == [step.name for step in STEPS if not step.needs_network]


@pytest.mark.size("all")
def test_a_stack_that_stays_is_not_good(account: Account, verify: Verify) -> None:
    account.ends("slipway publish", REFUSED)
    account.ends("cdk destroy foundation", REFUSED)
    report, told = verify()
    assert account.commands.count("cdk destroy foundation") == 2
    assert outcomes(report)[-1] == ("destroy foundation", "failed")
    assert "Run `make verify-aws` again: it begins with what is left." in told
    (stack,) = [item for item in report["left"] if item["kind"] == "stack"]
    assert (stack["name"], stack["is_meant"]) == (TARGET.foundation, False)


class Statuses:
    """CloudFormation, with another status of a stack at each look; the last one stays."""

    def __init__(self, *statuses: str) -> None:
        self._left = list(statuses)

    def client(self, service: str) -> Statuses:
        assert service == "cloudformation"
        return self

    def describe_stacks(self, **_: str) -> dict[str, Any]:
        status = self._left.pop(0) if len(self._left) > 1 else self._left[0]
        return {"Stacks": [{"StackStatus": status}]}


def awaited(access: Any, seconds: float) -> str | None:
    return accounts.await_stack(access, "stack", until=time.monotonic() + seconds)


def test_a_stack_that_still_changes_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A deployment that was interrupted goes on in CloudFormation."""
    monkeypatch.setattr(accounts, "POLL_SECONDS", 0.01)
    assert awaited(Statuses("UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"), 60) == "UPDATE_COMPLETE"
    # A change set that nobody executed changes nothing.
    assert awaited(Statuses("REVIEW_IN_PROGRESS"), 60) == "REVIEW_IN_PROGRESS"
    assert awaited(Statuses("UPDATE_IN_PROGRESS"), 0.02) == "UPDATE_IN_PROGRESS"


def test_a_bucket_whose_key_ends_is_refused(
    account: Account, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kms, s3 = account.stacks.client("kms"), account.stacks.client("s3")
    key = kms.create_key()["KeyMetadata"]["Arn"]
    s3.create_bucket(Bucket=BUCKET)
    rule = {
        "ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}
    }
    s3.put_bucket_encryption(Bucket=BUCKET, ServerSideEncryptionConfiguration={"Rules": [rule]})
    kms.schedule_key_deletion(KeyId=key.rpartition("/")[2], PendingWindowInDays=7)
    try:
        assert program.main(["--yes", "--folder", str(tmp_path)]) == 1
    finally:
        s3.delete_bucket(Bucket=BUCKET)
    told = capsys.readouterr().err
    assert f"is encrypted with {key}, which is no longer usable" in told
    assert "Remove the bucket with the commands that the earlier run printed." in told
