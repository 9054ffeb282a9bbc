"""What scanners say of an app, and which findings docs/security.md excuses, each with its reason.

A finding is a rule and a construct's path. A section of the page excuses each of its rules on each
of its resources. A section whose finding is gone is as wrong as a finding without a section.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks

from slipway.project import Project
from slipway.stacks.assembly import ALL_MODELS, Selection
from tests.support.projects import ENVIRONMENTS, config_text, write_project
from tests.synth.assemblies import AUTOSCALING, ROOT, add_stacks, new_app

PAGE = ROOT / "docs" / "security.md"
_CASES = ROOT / "tests" / "golden" / "cases"
_HEADING = "\n## Findings that remain\n"
# The name of each pack on the page, and what cdk-nag puts before its rules.
PACKS = {"NIST": "NIST.800.53.R5", "HIPAA": "HIPAA.Security", "PCI": "PCI.DSS.321"}
# The last part of the path of a construct that stands for one resource.
_RESOURCE = "/Resource"
# What a platform team sets that wants no finding which a field can fix.
KEYS = """\
  artifact_readers: ["111122223333"]
  log_key: artifact
  image_builds: {repository_key: artifact}
  remote_publishing:
    weights: ["s3://weights/"]
    hub_token_secret: arn:aws:secretsmanager:eu-west-1:210987654321:secret:hub-token-AbCdEf
  captured_data_days: 30
  network:
    vpc_id: vpc-0a1b2c3d
    subnet_ids: [subnet-0a1b2c3d, subnet-4e5f6a7b]
    vpc_endpoints: [s3, ecr, logs, monitoring, sts]
    route_table_ids: [rtb-0a1b2c3d]
"""


@dataclass(frozen=True, order=True)
class Finding:
    """A rule that a resource does not keep, with its pack or checkov's number.

    The path is the construct's, without a final `/Resource`.
    """

    rule: str
    path: str


@dataclass(frozen=True)
class Excuse:
    """A section of the page, for one rule and one kind of resource, with the reason.

    In the path of the resource, NAME is any model and FAMILY any container.
    """

    rule: str
    resource: str
    reason: str

    def covers(self, finding: Finding) -> bool:
        pattern = re.escape(self.resource)
        pattern = pattern.replace("NAME", r"(?!foundation/|image\-|artifacts\-)[^/]+")
        pattern = pattern.replace("FAMILY", "[^/]+")
        return self.rule == finding.rule and re.fullmatch(pattern, finding.path) is not None


def excuses(page: str) -> Iterator[Excuse]:
    """Yields what the sections below a page's heading excuse; raises ValueError for a bad one."""
    _, _, findings = page.partition(_HEADING)
    for section in findings.split("\n## ")[0].split("\n### ")[1:]:
        title, listed, reason = (part.strip() for part in section.split("\n\n", 2))
        items = dict(item.split(": ", 1) for item in listed.removeprefix("- ").split("\n- "))
        rules = [
            f"{PACKS[pack]}-{rule}"
            for rule, packs in re.findall(r"`(\w+)` \(([\w, ]+)\)", items.pop("cdk-nag", ""))
            for pack in packs.split(", ")
        ]
        rules += re.findall("CKV_[A-Z]+_[0-9]+", items.pop("checkov", ""))
        resources = re.findall("`([^`]+)`", items.pop("resources"))
        if not rules or not resources or items:
            raise ValueError(f"{title}: rules {rules}, resources {resources}, others {items}")
        yield from (Excuse(rule, resource, reason) for resource in resources for rule in rules)


def compare(findings: Collection[Finding], excused: Collection[Excuse]) -> list[str]:
    """Returns a line for each finding without an excuse, and for each excuse without a finding."""
    unexcused = [
        f"found and not excused: {finding.rule} at {finding.path}"
        for finding in sorted(findings)
        if not any(excuse.covers(finding) for excuse in excused)
    ]
    unneeded = [
        f"excused and not found: {excuse.rule} at {excuse.resource}"
        for excuse in excused
        if not any(excuse.covers(finding) for finding in findings)
    ]
    return unexcused + unneeded


_TARGET = "  target_invocations_per_instance_per_minute: 600\n"
_STEPS = (_TARGET, f"{_TARGET}  steps:\n    - {{from_times_target: 2, add_instances: 2}}\n")


def make_app(folder: Path, *, lines: str = KEYS, models: Sequence[str] = ALL_MODELS) -> cdk.App:
    files = {"scaled": config_text("scaled", AUTOSCALING, _STEPS)}
    for name in ("lmi-built", "lmi-partition", "neuron-inf2", "rollout-linear"):
        files[name] = (_CASES / f"{name}.yaml").read_text("utf-8")
    for name in ("async-from-zero", "data-capture", "guest", "host", "volume-key"):
        text = (_CASES / f"{name}.yaml").read_text("utf-8")
        text = text.replace("us-east-1", "eu-west-1").replace("  volume_size_gb: 30\n", "")
        # The release is for T4.
        files[name] = text.replace("ml.p3.2xlarge", "ml.g4dn.xlarge")
    # With a stack of its own for the key, and a compile role in it.
    files["lmi-partition"] = files["lmi-partition"].replace(
        "artifacts:\n", "artifacts:\n  isolated: true\n"
    )
    root = write_project(folder / "project", files, environments=ENVIRONMENTS + lines)
    app = new_app(folder / "cdk.out")
    selection = Selection(environment="production", models=models, allow_unpublished=True)
    add_stacks(app, Project(root), selection)
    return app


def logical_ids(assembly: Path) -> Mapping[str, Mapping[str, str]]:
    """Returns each template's logical ids, with the constructs' paths."""
    found: dict[str, dict[str, str]] = {}
    for file in assembly.glob("*.metadata.json"):
        metadata: dict[str, list[dict[str, Any]]] = json.loads(file.read_text("utf-8"))
        stack = file.name.removesuffix(".metadata.json")
        found[f"{stack}.template.json"] = {
            entry["data"]: short(path.removeprefix("/"))
            for path, entries in metadata.items()
            for entry in entries
            if entry["type"] == "aws:cdk:logicalId"
        }
    return found


def short(path: str) -> str:
    return path.removesuffix(_RESOURCE)


def reports_of(directory: Path) -> dict[str, Any]:
    """Returns what each validation of a synthesised app says, by the validation's name."""
    reports = json.loads((directory / "validation-report.json").read_text("utf-8"))
    return {each["pluginName"]: each for each in reports["pluginReports"]}


def validation_findings(directory: Path) -> list[str]:
    """Returns the rules of the CDK's own validation that an app breaks."""
    report = reports_of(directory)["CloudFormation Validate"]
    return [violation["ruleName"] for violation in report["violations"]]


def reports_of_packs(app: cdk.App, *packs: Any) -> dict[str, Any]:
    """Synthesises an app and returns the reports of packs of cdk-nag."""
    cdk.Validations.of(app).add_plugins(*packs)
    failed = False
    try:
        app.synth()
    except RuntimeError as error:
        assert "ValidationFailed" in str(error)  # noqa: PT017  # synthesis may pass or fail here
        failed = True
    found = reports_of(Path(app.outdir))
    assert failed == any(each["conclusion"] == "failure" for each in found.values())
    return found


def nag(app: cdk.App) -> dict[str, Any]:
    """Returns the report of the pack AwsSolutions."""
    report: dict[str, Any] = reports_of_packs(app, AwsSolutionsChecks(app))["AwsSolutions"]
    return report
