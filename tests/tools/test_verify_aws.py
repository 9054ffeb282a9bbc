"""`make verify-aws` before it makes anything, and its parts."""

import io
import json
import os
import sys
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from slipway.errors import UserError
from slipway.project import Project
from tests.support.projects import messages
from tools.verification.runner import Stage
from tools.verify_aws import __main__ as program
from tools.verify_aws.checks import BOOTSTRAP_PARAMETER, Caller, check, estimate, identify
from tools.verify_aws.project import (
    ENVIRONMENT,
    MODEL,
    QUEUE_MODEL,
    Settings,
    Target,
    image_uri,
    write_config,
    write_project,
)
from tools.verify_aws.removal import Remainder
from tools.verify_aws.report import MINUTES, Report

ACCOUNT = "123456789012"
TARGET = Target(ACCOUNT, "us-east-1", "ml.m5.large")
QUOTA = "ml.m5.large for endpoint usage"


class Account:
    """What an account answers; tests/embedded/lifecycle asks the embedded AWS the same questions.

    Args:
        bootstrap: version of the CDK's bootstrap; None without one.
        has_image: whether the image is there.
        quotas: of instances, by name.
    """

    def __init__(self, *, bootstrap: str | None, has_image: bool, quotas: dict[str, float]) -> None:
        self._bootstrap = bootstrap
        rows = [
            {"QuotaName": name, "QuotaCode": "L-1", "Value": value}
            for name, value in quotas.items()
        ]
        self._answers: dict[str, Any] = {
            "batch_get_image": {"images": [{"imageId": {}}] if has_image else []},
            "describe_endpoint": refusal("ValidationException", "Could not find endpoint"),
            "describe_stacks": refusal("ValidationError", "Stack with id x does not exist"),
            "get_bucket_encryption": refusal("NoSuchBucket"),
            "paginate": [{"Quotas": rows}],
        }

    def client(self, _service: str) -> "Account":
        return self

    def get_parameter(self, *, Name: str) -> Any:  # noqa: N803
        assert Name == BOOTSTRAP_PARAMETER
        if self._bootstrap is None:
            raise refusal("ParameterNotFound")
        return {"Parameter": {"Value": self._bootstrap}}

    def get_paginator(self, operation: str) -> "Account":
        assert operation in ("list_service_quotas", "list_aws_default_service_quotas")
        return self

    def __getattr__(self, operation: str) -> Any:
        answer = self._answers[operation]

        def call(**_: Any) -> Any:
            if isinstance(answer, ClientError):
                raise answer
            return answer

        return call


def refusal(code: str, message: str = "") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "Operation")


def ready(**quotas: float) -> Account:
    return Account(bootstrap="30", has_image=True, quotas=quotas)


def caller(account: Account) -> Caller:
    access: Any = account
    return Caller(ACCOUNT, "arn:aws:sts::x", "us-east-1", "http://localhost", access)


@pytest.fixture
def folder(tmp_path):
    write_project(tmp_path, TARGET)
    return tmp_path


# What is deployed


@pytest.mark.parametrize("region", ["us-east-1", "us-gov-west-1", "cn-north-1"])
def test_slipway_plans_the_project_in_each_partition(tmp_path, region):
    write_project(tmp_path, Target(ACCOUNT, region, "ml.m5.large"))
    project = Project(tmp_path)
    environment = project.environment(ENVIRONMENT)
    plan = project.plan(MODEL, environment, allow_unpublished=True)
    assert plan.endpoint_name == "verify--verify-aws-aws"
    assert plan.image.uri == image_uri(region)
    # Nothing scales beyond the one instance that is paid for.
    (variant,) = plan.variants
    assert (variant.instance_types, variant.instance_count) == (("ml.m5.large",), 1)
    assert plan.config.autoscaling is not None
    assert plan.config.autoscaling.max_instance_count == 1
    assert {path.name for path in (tmp_path / "model").iterdir()} == {
        "model.py",
        "serving.properties",
    }


def test_a_change_changes_one_alarm(folder):
    path = folder / "model_configs" / "verify-aws.yaml"
    before = path.read_text().splitlines()
    write_config(folder, TARGET, Settings("ml.m5.large", latency=1500))
    changed = [
        new for old, new in zip(before, path.read_text().splitlines(), strict=True) if old != new
    ]
    assert changed == ["  model_latency_p99_milliseconds: 1500"]


def test_an_unknown_region_is_told_with_the_nearest():
    with pytest.raises(UserError) as caught:
        image_uri("eu-west-11")
    (problem,) = caught.value.problems
    assert problem.message == "the region 'eu-west-11' is not known"
    assert problem.remedy == "Did you mean `eu-west-1`? Name another one with `--region`."


def test_a_region_without_the_image_is_told():
    with pytest.raises(UserError) as caught:
        image_uri("us-iso-east-1")
    assert "AWS publishes no image djl-inference:0.36.0-cpu-full" in messages(caught.value)[0]


# What it costs


def test_the_cost_has_the_longest_time_and_the_key():
    found = estimate(["ml.m5.large"], "us-east-1", 60)
    assert (found.minutes, found.usd_per_hour) == (90, 0.115)
    assert found.lines[:2] == [
        "One ml.m5.large in us-east-1 costs 0.115 USD an hour (as of 2026-09-27). It runs for 90 "
        "minutes at most: 0.17 USD.",
        "A KMS key costs 1 USD a month until you remove it. The command for that is printed at the "
        "end.",
    ]


def test_a_price_that_is_unknown_is_said_to_be():
    assert estimate(["ml.m5.large"], "eu-west-3", 60).lines[0] == (
        "The price of ml.m5.large in eu-west-3 is not known. In us-east-1 it is 0.115 USD an hour. "
        "See https://aws.amazon.com/sagemaker/ai/pricing/. It runs for 90 minutes at most."
    )


def test_a_deep_run_costs_two_of_its_dearest_type():
    found = estimate(["ml.m5.large", "ml.m5.xlarge"], "us-east-1", 210, at_once=2)
    assert found.lines[0] == (
        "One ml.m5.xlarge in us-east-1 costs 0.23 USD an hour (as of 2026-09-27). Up to 2 run at "
        "once for 240 minutes at most: 1.84 USD."
    )


# What is refused before anything is made


def test_an_account_without_bootstrap_image_and_quota_is_told_all_three(folder):
    account = Account(bootstrap=None, has_image=False, quotas={QUOTA: 0.0})
    with pytest.raises(UserError) as caught:
        check(caller(account), TARGET, folder)
    told = [(problem.message, problem.remedy) for problem in caught.value.problems]
    assert told == [
        (
            "the CDK is not bootstrapped in us-east-1: there is no SSM parameter "
            "/cdk-bootstrap/hnb659fds/version",
            f"Run `cdk bootstrap aws://{ACCOUNT}/us-east-1`. This command never does: the roles "
            "that it makes are the account's.",
        ),
        (
            f"the image {image_uri('us-east-1')} is not there",
            "Name another region with `--region`, and report this: AWS may have withdrawn the tag.",
        ),
        (
            "the quota 'ml.m5.large for endpoint usage' is 0 in us-east-1, and the deployment "
            "needs 1",
            "Ask for more with `aws service-quotas request-service-quota-increase --service-code "
            "sagemaker --quota-code L-1 --desired-value 1 --region us-east-1`, or choose another "
            "type.",
        ),
    ]


def test_a_repository_without_the_tag_and_an_old_bootstrap_are_told(folder):
    account = Account(bootstrap="5", has_image=False, quotas={QUOTA: 1.0})
    with pytest.raises(UserError) as caught:
        check(caller(account), TARGET, folder)
    assert messages(caught.value) == [
        "the CDK's bootstrap in us-east-1 has version 5; templates need 6",
        f"the image {image_uri('us-east-1')} is not there",
    ]


def test_a_ready_account_passes_and_what_it_does_not_say_is_noted(folder):
    assert check(caller(ready(**{QUOTA: 2.0})), TARGET, folder) == []
    unlisted = f"quota '{QUOTA}': Service Quotas does not list it"
    assert check(caller(ready()), TARGET, folder) == [unlisted]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        # Slipway's own rules, with their own words.
        ("ml.m5.larg", '"ml.m5.larg" is not a known hosting instance type'),
        ("ml.t2.medium", "ml.t2.medium is burstable"),
        (
            "ml.g5.xlarge",
            "ml.g5.xlarge has NVIDIA A10G, and the image runs on x86-64 processors alone",
        ),
        ("ml.c6in.2xlarge", "us-east-1 does not host ml.c6in.2xlarge"),
    ],
)
def test_a_type_that_cannot_serve_is_refused(tmp_path, name, message):
    target = Target(ACCOUNT, "us-east-1", name)
    write_project(tmp_path, target)
    with pytest.raises(UserError) as caught:
        check(caller(ready()), target, tmp_path)
    (found,) = messages(caught.value)
    assert found.startswith(message)


def test_no_credentials_are_told(monkeypatch):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(UserError) as caught:
        identify("eu-west-1")
    (problem,) = caught.value.problems
    assert problem.message == ("no usable AWS credentials: Unable to locate credentials")
    assert "`aws sso login`" in problem.remedy


@pytest.mark.parametrize("deep", [[], ["--deep"]])
def test_without_a_terminal_it_says_what_it_would_do_and_makes_nothing(
    tmp_path, monkeypatch, capsys, deep
):
    # The account answers questions alone.
    monkeypatch.setattr(program, "identify", lambda _: caller(ready()))
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    arguments = [*deep, "--region", "us-east-1", "--folder", str(tmp_path / "run")]
    assert program.main(arguments) == 1
    told = capsys.readouterr().err
    assert "Slipway's authors have not run it in AWS" in told
    assert f"Account {ACCOUNT}, us-east-1, as arn:aws:sts::" in told
    assert f"Not checked: quota '{QUOTA}': " in told
    assert "Add `--yes`: `make verify-aws VERIFY_AWS_ARGS=--yes`." in told
    told, _, _ = told.partition("there is no terminal to ask at")
    if deep:
        assert f"DEEP=1 adds 10 steps, about {MINUTES} minutes in AWS:" in told
        assert "  - It changes the instance type, which replaces the fleet (10 min)." in told
        assert "One ml.m5.xlarge in us-east-1 costs 0.23 USD an hour" in told
        assert "Up to 2 run at once for 240 minutes at most: 1.84 USD." in told
    else:
        assert "One ml.m5.large in us-east-1 costs 0.115 USD an hour" in told
    # The default time is enough for the estimate, for the first stages and for a slow step.
    assert MINUTES + 45 <= program._DEEP_LIMIT_MINUTES


def test_a_second_run_waits_for_the_folder(tmp_path, capsys):
    with program._only_run(tmp_path):
        assert program.main(["--folder", str(tmp_path), "--json"]) == 1
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert problem["message"] == f"another run uses {tmp_path}"


# DEEP=1

DEEP = replace(
    TARGET,
    other_type="ml.m5.xlarge",
    subnet_ids=("subnet-0a1b2c3d",),
    security_group_ids=("sg-0a1b2c3d",),
)


def test_a_deep_run_needs_room_for_two_fleets_of_the_other_type(tmp_path):
    write_project(tmp_path, DEEP)
    quotas = {QUOTA: 2.0, "ml.m5.xlarge for endpoint usage": 1.0}
    with pytest.raises(UserError) as caught:
        check(caller(ready(**quotas)), DEEP, tmp_path)
    assert messages(caught.value) == [
        "the quota 'ml.m5.xlarge for endpoint usage' is 1 in us-east-1, and the deployment needs 2"
    ]
    quotas["ml.m5.xlarge for endpoint usage"] = 2.0
    assert check(caller(ready(**quotas)), DEEP, tmp_path) == []


def test_slipway_plans_the_second_endpoint_in_the_named_network(tmp_path):
    write_project(tmp_path, DEEP)
    project = Project(tmp_path)
    plan = project.plan(QUEUE_MODEL, project.environment(ENVIRONMENT), allow_unpublished=True)
    vpc = plan.config.endpoint.vpc
    assert vpc is not None
    assert (vpc.subnet_ids, vpc.security_group_ids) == (DEEP.subnet_ids, DEEP.security_group_ids)
    assert plan.config.endpoint.queue is not None
    assert plan.config.endpoint.queue.failure_output is not None


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--deep", "--other-type", "ml.m5.large"], "are the same"),
        (["--deep", "--subnets", "subnet-1"], "are given together"),
        (["--subnets", "subnet-1", "--security-groups", "sg-1"], "--subnets needs --deep"),
    ],
)
def test_options_that_make_no_sense_are_refused(arguments, told, capsys):
    with pytest.raises(SystemExit):
        program.main(arguments)
    assert told in capsys.readouterr().err


# The report


def test_the_report_has_no_account_number_and_is_good_only_if_all_is_removed():
    cost = estimate(["ml.m5.large"], "us-east-1", 60)
    report = Report(ACCOUNT, "us-east-1", "https://sts", image_uri("us-east-1"), cost, [])
    report.stages.append(Stage("deploy", "ok", 1.3, f"bucket-{ACCOUNT}"))
    assert not report.is_good
    report.remains = [Remainder("bucket", f"bucket-{ACCOUNT}", ("aws s3 rb",))]
    assert report.is_good
    assert ACCOUNT not in report.render()
    document = json.loads(report.render())
    assert document["result"] == "ok"
    assert document["stages"] == [
        {"name": "deploy", "outcome": "ok", "seconds": 1.3, "detail": "bucket-ACCOUNT"}
    ]
    report.remains.append(Remainder("endpoint", "left", is_meant=False))
    assert not report.is_good
