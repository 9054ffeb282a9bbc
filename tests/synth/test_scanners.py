"""cfn-lint and cdk-nag find nothing; what is excused is excused one by one, with a reason."""

import json
import re
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from cfnlint.rules import Match

from slipway.project import Project
from slipway.stacks.assembly import Selection
from tests.support.linting import lint
from tests.synth.assemblies import GOOD, Assembly, add_stacks, new_app
from tests.synth.scanners import nag, validation_findings

STACKS = ("foundation", *GOOD)


@pytest.fixture(scope="module")
def findings(assembly: Assembly) -> dict[Path, list[Match]]:
    return lint(assembly.template_file(stack) for stack in STACKS)


@pytest.mark.parametrize("stack", STACKS)
def test_cfn_lint_finds_nothing(assembly: Assembly, findings: dict[Path, list[Match]], stack: str):
    assert [str(match) for match in findings[assembly.template_file(stack)]] == []


def test_cfn_lint_would_find_something(tmp_path: Path):
    path = tmp_path / "bad.template.json"
    resource = {"Type": "AWS::SageMaker::Endpoint", "Properties": {"EndpointNam": "x"}}
    path.write_text(json.dumps({"Resources": {"Endpoint": resource}}))
    assert {match.rule.id for match in lint([path])[path]} >= {"E3002", "E3003"}


def test_the_cdks_own_validation_finds_nothing(assembly: Assembly):
    # app.py leaves it out, because it would double the time of every synth.
    assert validation_findings(assembly.directory) == []


def test_the_cdks_own_validation_would_find_something(tmp_path: Path):
    app = new_app(tmp_path, validates=True)
    properties = {"RetentionInDays": 31, "Nope": 1}
    cdk.CfnResource(
        cdk.Stack(app, "bad"), "Group", type="AWS::Logs::LogGroup", properties=properties
    )
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        app.synth()
    assert sorted(validation_findings(tmp_path)) == ["F3002", "W3030"]


def test_cdk_nag_finds_nothing_that_is_not_acknowledged_with_a_reason(
    project: Project, tmp_path: Path
):
    app = new_app(tmp_path)
    add_stacks(app, project, Selection(models=GOOD))
    report = nag(app, tmp_path)
    assert report["violations"] == []
    excused = report["suppressedViolations"]
    # Only wildcards, each named in full, and only on the three kinds of roles.
    rule = r"AwsSolutions-IAM5\[Resource::(\*|arn:aws:[a-z0-9-]+:.*[a-z].*\*)\]"
    for item in excused:
        assert re.fullmatch(rule, item["ruleName"]), item["ruleName"]
        assert item["acknowledgedId"] == f"AwsSolutions::{item['ruleName']}"
        assert len(item["reason"]) > 20
        for construct in item["violatingConstructs"]:
            assert construct["constructPath"].endswith(
                (
                    "/ExecutionRole/Role/Resource",
                    "/EndpointUpdate/FunctionRole/Resource",
                    "foundation/Compiling/Role/Resource",
                )
            )
    assert len(excused) == (3 + 6) * len(GOOD) + 5


def test_cdk_nag_does_fire(tmp_path: Path):
    app = new_app(tmp_path)
    s3.Bucket(cdk.Stack(app, "open"), "Bucket")
    report = nag(app, tmp_path)
    assert report["conclusion"] == "failure"
    assert "AwsSolutions-S10" in {item["ruleName"] for item in report["violations"]}
