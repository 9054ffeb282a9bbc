"""What the CDK's own validation and cdk-nag say of an app."""

import json
from pathlib import Path

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks


def validation_findings(directory: Path) -> list[str]:
    reports = json.loads((directory / "validation-report.json").read_text("utf-8"))
    (report,) = (
        r for r in reports["pluginReports"] if r["pluginName"] == "CloudFormation Validate"
    )
    return [violation["ruleName"] for violation in report["violations"]]


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
