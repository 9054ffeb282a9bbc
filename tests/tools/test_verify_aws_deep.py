"""`make verify-aws DEEP=1`: each answer tells what happened, and what contradicts Slipway fails."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from botocore.exceptions import ClientError

from slipway.deployed.served import Served
from slipway.operations.deployment import Deployment
from slipway.operations.status.differences import Difference
from slipway.operations.status.report import EndpointStatus, Status
from slipway.operations.status.rollback_causes import Trip
from tests.support.waiting import eventually
from tools import prose
from tools.verify_aws import account as accounts
from tools.verify_aws import questions
from tools.verify_aws import report as reports
from tools.verify_aws.account import Watch, awaited
from tools.verify_aws.checks import estimate
from tools.verify_aws.commands import CheckError, CommandError, Session
from tools.verify_aws.project import Target, write_project
from tools.verify_aws.questions import Questions, quote
from tools.verify_aws.report import STEPS, Answer, Report, ask_all, render_answers

ACCOUNT = "123456789012"
TARGET = Target(ACCOUNT, "us-east-1", "ml.m5.large", other_type="ml.m5.xlarge")
AWS, EMBEDDED = "https://sts.us-east-1.amazonaws.com", "http://127.0.0.1:4566"
ENDPOINT, AFTER = "HostingEndpointD164256E", "EndpointUpdateAfter0A1B2C3D"
STARTED = datetime(2026, 11, 28, 12, tzinfo=UTC)


class Account:
    """What the services answer, by operation. Each test has a deployment change some of it."""

    def __init__(self) -> None:
        self.config, self.status, self.reason = "config-1", "InService", ""
        self.streams = ["AllTraffic/i-1"]
        self.policy_name, self.policy_arn, self.known_arn = "p-1", "arn:1", "arn:1"
        self.stack, self.failures, self.changed = "UPDATE_COMPLETE", tuple[str, ...](), STARTED
        self.differences: tuple[Difference, ...] = ()
        self.trips: tuple[Trip, ...] = ()
        self.tags: dict[str, str] = {}
        self.fails = False
        self.deployment: dict[str, Any] | None = None

    def found(self) -> Status:
        """What `slipway status` finds."""
        name, served = TARGET.endpoint, Served(self.config)
        return Status(
            planned=None,
            differences=self.differences,
            endpoint=EndpointStatus(name, self.status, STARTED, self.reason, served, ()),
            deployment=Deployment(
                name, self.stack, self.changed, None, self.failures, is_protected=False
            ),
            declared=None,
            alarms=(),
            trips=self.trips,
            log_group="",
            log_lines=(),
        )

    def client(self, _service: str) -> Account:
        return self

    def get_paginator(self, operation: str) -> Any:
        class Pages:
            @staticmethod
            def paginate(**arguments: Any) -> list[Any]:
                return [getattr(self, operation)(**arguments)]

        return Pages

    def describe_endpoint(self, **_: Any) -> Any:
        return {
            "EndpointArn": "arn",
            "EndpointConfigName": self.config,
            "EndpointStatus": self.status,
            "CreationTime": STARTED,
            **({"FailureReason": self.reason} if self.reason else {}),
            **({"LastDeploymentConfig": self.deployment} if self.deployment else {}),
        }

    def list_tags(self, **_: Any) -> Any:
        return {"Tags": [{"Key": key, "Value": value} for key, value in self.tags.items()]}

    def describe_log_streams(self, **_: Any) -> Any:
        return {"logStreams": [{"logStreamName": name} for name in self.streams]}

    def filter_log_events(self, **_: Any) -> Any:
        moment = STARTED + timedelta(seconds=90)
        event = {"timestamp": moment.timestamp() * 1000, "message": "loaded", "logStreamName": "i"}
        return {"events": [event]}

    def describe_scaling_policies(self, **_: Any) -> Any:
        return {"ScalingPolicies": [{"PolicyName": self.policy_name, "PolicyARN": self.policy_arn}]}

    def describe_stack_resources(self, **_: Any) -> Any:
        kind = "AWS::ApplicationAutoScaling::ScalingPolicy"
        return {"StackResources": [{"ResourceType": kind, "PhysicalResourceId": self.known_arn}]}

    def describe_stacks(self, **_: Any) -> Any:
        return {"Stacks": [{"StackStatus": self.stack}]}

    def invoke_endpoint(self, **_: Any) -> None:
        if self.fails:
            raise ClientError({"Error": {"Code": "ModelError", "Message": ""}}, "InvokeEndpoint")


Deploys = Callable[[Account], None]


def changes(**values: Any) -> Deploys:
    """Deploys, after which the account has some values."""
    return lambda account: vars(account).update(values)


def undone(
    resource: str, why: str, stack: str = "UPDATE_ROLLBACK_COMPLETE", /, **values: Any
) -> Deploys:
    """Fails as `cdk deploy` does when CloudFormation takes an update back."""

    def fails(account: Account) -> None:
        vars(account).update(values, stack=stack, failures=(f"{resource}: {why}",))
        account.changed += timedelta(seconds=1)
        raise CommandError("`cdk deploy` ended with 1\n    the last lines")

    return fails


def session_of(account: Account, deploys: Deploys, folder: Path) -> Session:
    def run(*_: str, seconds: float) -> str:
        assert seconds > 0
        deploys(account)
        return ""

    services: Any = account
    return Session(TARGET, services, run, folder, time.monotonic() + 60)


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Asks one question of an account in which every command has an effect."""
    write_project(tmp_path, TARGET)

    def ask(account: Account, name: str, deploys: Deploys) -> str:
        found = lambda *_: (account.found(), None, None)  # noqa: E731  # of one test
        monkeypatch.setattr(questions, "find_model_status", found)
        (step,) = [step for step in STEPS if step.name == name]
        questions_of = Questions(session_of(account, deploys, tmp_path))
        return str(getattr(questions_of, step.ask)())

    return ask


KEEPS = changes()


def test_the_first_log_line_is_told_with_its_age(ask):
    assert ask(Account(), "first log line", KEEPS) == (
        "The container's first line is from 90 s after the endpoint's creation: `loaded`."
    )


def test_a_type_change_has_to_bring_a_policy_of_another_name(ask, tmp_path):
    told = ask(Account(), "change the type", changes(policy_name="p-2"))
    assert told.endswith("by the name `p-2`. The scalable target had its bounds again.")
    config = yaml.safe_load((tmp_path / "model_configs" / "verify-aws.yaml").read_text())
    assert config["endpoint"]["instances"] == ["ml.m5.xlarge"]
    with pytest.raises(CheckError, match="The policy kept the name `p-1`"):
        ask(Account(), "change the type", KEEPS)


def test_a_change_has_to_arrive(ask):
    differs = changes(differences=(Difference("autoscaling.target", "600", "500"),))
    told = ask(Account(), "change the target", KEEPS)
    assert told == "CloudFormation changed the value in place, after 0 s."
    for name in ("change the target", "change the type", "the target after it", "only a tag"):
        with pytest.raises(CheckError, match=r"`autoscaling.target` is 600, not 500"):
            ask(Account(), name, differs)


def test_a_rollback_is_told_with_a_new_reason_or_as_silent(ask):
    assert ask(Account(), "a broken container", undone(AFTER, "still serves")) == (
        "`FailureReason` told nothing whenever it was read. SageMaker undid it in silence. "
        f"CloudFormation failed at `{AFTER}` with `still serves`. The stack was rolled back after "
        "0 s."
    )
    account = Account()
    account.reason = "an earlier one"
    told = ask(account, "a broken container", undone(ENDPOINT, "not stabilized", reason="ping"))
    assert told.startswith(
        f"SageMaker's `FailureReason` was `ping`. CloudFormation failed at `{ENDPOINT}` with"
    )


def test_what_has_to_be_undone_and_is_not_contradicts_slipway(ask):
    other = (Difference("endpoint.instances", "ml.m5.large", "ml.m5.xlarge"),)
    for deploys, told in (
        (KEEPS, "The deployment succeeded, though the container could"),
        (undone(ENDPOINT, "x", config="config-2"), "the endpoint serves config-2, not config-1"),
        (undone(ENDPOINT, "x", differences=other), r"`endpoint.instances` is ml.m5.large"),
    ):
        with pytest.raises(CheckError, match=told):
            ask(Account(), "a broken container", deploys)

    def stale(account: Account) -> None:
        account.stack, account.failures = "UPDATE_ROLLBACK_COMPLETE", ("X: y",)
        raise CommandError("`cdk deploy` ended with 1")

    # Another end is no answer, and neither is an earlier one.
    for fails in (undone(ENDPOINT, "x", "UPDATE_ROLLBACK_FAILED"), stale):
        with pytest.raises(CommandError) as caught:
            ask(Account(), "a broken container", fails)
        assert not isinstance(caught.value, CheckError)


def test_a_policy_that_was_put_again_is_found_or_not(ask):
    account = Account()
    account.known_arn = "arn:before"
    assert ask(account, "the target after it", KEEPS) == (
        "The policy that was put again had another ARN. CloudFormation found it, and changed the "
        "value."
    )
    commands = []

    def stuck(account: Account) -> None:
        commands.append(account.stack)
        if len(commands) == 1:
            undone("Policy", "was not found", "UPDATE_ROLLBACK_FAILED")(account)

    told = ask(Account(), "the target after it", stuck)
    assert told.endswith(
        "CloudFormation refused: `Policy` failed with `was not found`. The stack was "
        "`UPDATE_ROLLBACK_FAILED`. After `cdk rollback --orphan` it was not."
    )
    assert len(commands) == 2


def test_a_rollout_without_alarms_contradicts_slipway(ask):
    def rollout(*alarms: str) -> Deploys:
        deployment = {"AutoRollbackConfiguration": {"Alarms": list(alarms)}}
        streams = ["AllTraffic/i-1", "AllTraffic/i-2"]
        return changes(deployment=deployment, config="config-2", streams=streams)

    assert ask(Account(), "only the rollout", rollout("a", "b")) == (
        "The endpoint serves another configuration after 0 s. It was never seen being updated, and "
        "the number of new instances with a log is 1. The number of its alarms that SageMaker "
        "knows is 2."
    )
    with pytest.raises(CheckError, match="SageMaker knows no alarm of the rollout"):
        ask(Account(), "only the rollout", rollout())


def test_a_tag_may_start_no_fleet(ask):
    tags, streams = {"verified": "by-verify-aws"}, ["AllTraffic/i-1", "AllTraffic/i-2"]
    assert ask(Account(), "only a tag", changes(tags=tags)).endswith("The endpoint has the tag.")
    for deploys, told in (
        (changes(tags=tags, streams=streams), "number of new instances with a log is 1"),
        (KEEPS, "does not have the tag"),
    ):
        with pytest.raises(CheckError, match=told):
            ask(Account(), "only a tag", deploys)


def test_a_rollback_without_an_alarm_contradicts_slipway(ask):
    trips = (Trip("errors", "", STARTED, "crossed"),)
    reason = "alarms in state ALARM"
    told = ask(Account(), "an alarm", undone(ENDPOINT, reason, fails=True, trips=trips))
    assert told.startswith("`errors` went off. `FailureReason` told nothing")
    # The last look of the watch, at least.
    assert re.search(r" requests, [1-9]\d* failed\.$", told)
    with pytest.raises(CheckError, match="CloudWatch's history has no alarm of the rollout"):
        ask(Account(), "an alarm", undone(ENDPOINT, "x"))


# One question after the other


def report_of(answered_by: str) -> Report:
    price = estimate(["ml.m5.large"], "eu-west-1", 60)
    return Report(ACCOUNT, "eu-west-1", answered_by, "image", price, [], started=STARTED)


class Answers:
    """Questions of which two have no answer that is as expected."""

    def __init__(self, _session: Session) -> None: ...

    def __getattr__(self, name: str) -> Callable[[], str]:
        return partial(self.answer, name)

    def answer(self, name: str) -> str:
        if name == "change_type":
            raise CommandError("`cdk deploy` ended with 1\n    the last lines")
        if name == "fail_request":
            raise CheckError("It is not so.")
        return "It is so."


def test_a_question_without_an_answer_does_not_stop_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(reports, "Questions", Answers)
    report = report_of(AWS)
    ask_all(report, session_of(Account(), lambda _: None, tmp_path))
    outcomes = {name: (answer.outcome, answer.text) for name, answer in report.answers.items()}
    assert len(outcomes) == len(STEPS)
    assert outcomes["change the type"] == ("no answer", "`cdk deploy` ended with 1.")
    assert outcomes["a failing request"] == ("otherwise", "It is not so.")
    assert outcomes["change the target"] == ("as expected", "It is so.")
    assert outcomes["deletion in a VPC"][0] == "no answer"
    failed = [stage.name for stage in report.stages if stage.outcome == "failed"]
    assert failed == ["change the type", "a failing request"]


# The lines


def test_there_is_a_line_for_each_question_and_none_has_the_account():
    report = report_of(AWS)
    report.answers = {
        "first log line": Answer("as expected", f"It is in {quote(ACCOUNT)}."),
        "only a tag": Answer("otherwise", "The fleet was new."),
        "an alarm": Answer("no answer", "`cdk deploy` ended with 1."),
    }
    found = render_answers(report).splitlines()
    assert len(found) == len(STEPS)
    begin = "(AWS in eu-west-1, 2026-11-28)"
    assert found[0] == f"- **First log line under the execution role** {begin}: It is in `ACCOUNT`."
    assert found[1].endswith(f"{begin}: No answer: the run ended before.")
    for line in (
        f"- **Change of a tag alone** {begin}: **Not as Slipway relies on.** The fleet was new.",
        f"- **Alarm set off during a rollout** {begin}: No answer: `cdk deploy` ended with 1.",
    ):
        assert line in found


def test_a_line_of_the_embedded_aws_says_what_it_cannot_show():
    report = report_of(EMBEDDED)
    report.answers = {step.name: Answer("as expected", "It is so.") for step in STEPS}
    found = render_answers(report).splitlines()
    assert found[0] == (
        "- **First log line under the execution role** (the embedded AWS, 2026-11-28): It is so. "
        "The embedded AWS writes the log itself, and asks for no right."
    )
    assert all(line.endswith(step.not_local) for line, step in zip(found, STEPS, strict=True))
    assert list(prose.findings("\n".join(found))) == []
    assert [
        report_of(url).is_answered_by_aws
        for url in (AWS, EMBEDDED, "https://amazonaws.com.example.org")
    ] == [True, False, False]


def test_a_quote_is_one_line_with_the_beginning_and_the_end():
    assert quote("a\n  `b`") == "`a 'b'`"
    text = quote(f"first {'x' * 1000} last")
    assert text.startswith("`first x")
    assert text.endswith("x last`")
    assert len(text) < 260


# What is seen meanwhile


def test_a_watch_looks_once_more_at_the_end():
    values = ["before"]
    with Watch(lambda: values[-1], pause_seconds=60) as seen:
        eventually(lambda: seen.seen)
        values.append("after")
    assert [value for _, value in seen.seen] == ["before", "after"]


def test_what_does_not_come_is_told(monkeypatch):
    monkeypatch.setattr(accounts, "POLL_SECONDS", 0.0)
    looks = iter([None, None, "there"])
    assert awaited(lambda: next(looks), until=time.monotonic() + 60, missing="") == "there"
    with pytest.raises(CheckError, match="nothing came"):
        awaited(lambda: None, until=time.monotonic(), missing="nothing came")
