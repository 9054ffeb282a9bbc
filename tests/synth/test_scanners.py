"""cfn-lint and cdk-nag find nothing; what is excused is excused one by one, with a reason."""

from __future__ import annotations

import json
import re
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from cdk_nag import AwsSolutionsChecks
from cfnlint.api import lint_file

from slipway.project import Project
from stacks.assembly import Selection, add_stacks
from tests.synth.conftest import GOOD, Assembly, new_app


@pytest.mark.parametrize("stack", ["foundation", *GOOD])
def test_cfn_lint_finds_nothing(assembly: Assembly, stack: str):
    path = assembly.directory / f"{stack}.template.json"
    assert [str(match) for match in lint_file(path)] == []


def test_cfn_lint_would_find_something(tmp_path: Path):
    path = tmp_path / "bad.template.json"
    resource = {"Type": "AWS::SageMaker::Endpoint", "Properties": {"EndpointNam": "x"}}
    path.write_text(json.dumps({"Resources": {"Endpoint": resource}}))
    assert {match.rule.id for match in lint_file(path)} >= {"E3002", "E3003"}


def validation_findings(directory: Path) -> list[str]:
    reports = json.loads((directory / "validation-report.json").read_text("utf-8"))
    (report,) = (
        r for r in reports["pluginReports"] if r["pluginName"] == "CloudFormation Validate"
    )
    return [violation["ruleName"] for violation in report["violations"]]


def test_the_cdks_own_validation_finds_nothing(assembly: Assembly):
    # app.py leaves it out, because it would double the time of every synth.
    assert validation_findings(assembly.directory) == []


def test_the_cdks_own_validation_would_find_something(tmp_path: Path):
    app = new_app(tmp_path)
    properties = {"RetentionInDays": 31, "Nope": 1}
    cdk.CfnResource(
        cdk.Stack(app, "bad"), "Group", type="AWS::Logs::LogGroup", properties=properties
    )
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        app.synth()
    assert sorted(validation_findings(tmp_path)) == ["F3002", "W3030"]


def nag(app: cdk.App, directory: Path) -> dict:
    """Runs the AwsSolutions pack and returns its part of the validation report."""
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    failed = False
    try:
        app.synth()
    except RuntimeError as error:
        assert "ValidationFailed" in str(error)  # noqa: PT017  # synthesis may pass or fail here
        failed = True
    reports = json.loads((directory / "validation-report.json").read_text("utf-8"))
    (report,) = (r for r in reports["pluginReports"] if r["pluginName"] == "AwsSolutions")
    assert failed == (report["conclusion"] == "failure")
    return report


def test_cdk_nag_finds_nothing_that_is_not_acknowledged_with_a_reason(
    project: Project, tmp_path: Path
):
    app = new_app(tmp_path)
    add_stacks(app, project, Selection(models=GOOD))
    report = nag(app, tmp_path)
    assert report["violations"] == []
    excused = report["suppressedViolations"]
    # Only wildcards, each named in full, and only on the two kinds of roles.
    rule = r"AwsSolutions-IAM5\[Resource::(\*|arn:aws:[a-z0-9]+:.*[a-z].*\*)\]"
    for item in excused:
        assert re.fullmatch(rule, item["ruleName"]), item["ruleName"]
        assert item["acknowledgedId"] == f"AwsSolutions::{item['ruleName']}"
        assert len(item["reason"]) > 20
        for construct in item["violatingConstructs"]:
            assert construct["constructPath"].endswith(
                ("/ExecutionRole/Role/Resource", "foundation/Compiling/Role/Resource")
            )
    assert len(excused) == 3 * len(GOOD) + 5


def test_cdk_nag_does_fire(tmp_path: Path):
    app = new_app(tmp_path)
    s3.Bucket(cdk.Stack(app, "open"), "Bucket")
    report = nag(app, tmp_path)
    assert report["conclusion"] == "failure"
    assert "AwsSolutions-S10" in {item["ruleName"] for item in report["violations"]}
