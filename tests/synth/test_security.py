"""cdk-nag and checkov find what docs/security.md excuses; each scanner would find something.

`test_shipped.py`, `test_golden.py` and others have cfn-lint and the CDK's own validation look at
templates.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from cdk_nag import HIPAASecurityChecks, NIST80053R5Checks, PCIDSS321Checks

from slipway.cli.plan_text import describe_plan
from tests.support.groups import BUILD
from tests.support.linting import lint
from tests.support.plans import plan_for
from tests.support.projects import PRODUCTION, model_config
from tests.synth.assemblies import new_app
from tests.synth.security import (
    KEYS,
    PACKS,
    PAGE,
    Excuse,
    Finding,
    compare,
    excuses,
    logical_ids,
    make_app,
    nag,
    reports_of_packs,
    short,
    validation_findings,
)

LOG_GROUP = "AWS::Logs::LogGroup"
# What has wildcards: the end of the construct's path.
EXCUSED = (
    "AsyncInference/Policy", "Build/BuildRole", "Compiling/Role", "DataCapture/Policy",
    "EndpointUpdate/FunctionRole", "/ExecutionRole/Role", "/OwnExecutionRole/Role",
    "RemotePublishing/BuildRole", "RollbackAlarms/Policy", "Vpc/Policy",
)  # fmt: skip


def found_by_packs(app: cdk.App) -> set[Finding]:
    """Synthesises an app and returns what the three packs find in it."""
    packs = NIST80053R5Checks(app), HIPAASecurityChecks(app), PCIDSS321Checks(app)
    plugins = reports_of_packs(app, *packs)
    assert set(plugins) == set(PACKS.values())
    # The code excuses nothing of these packs.
    assert not any(each.get("suppressedViolations") for each in plugins.values())
    return {
        Finding(violation["ruleName"], short(construct["constructPath"]))
        for plugin in plugins.values()
        for violation in plugin["violations"]
        for construct in violation["violatingConstructs"]
    }


def of_packs() -> list[Excuse]:
    found = excuses(PAGE.read_text("utf-8"))
    return [each for each in found if not each.rule.startswith("CKV_")]


def test_the_packs_find_what_the_page_excuses(tmp_path: Path):
    assert compare(found_by_packs(make_app(tmp_path)), of_packs()) == []


def test_aws_solutions_finds_nothing_that_the_code_does_not_excuse(tmp_path: Path):
    report = nag(make_app(tmp_path))
    assert report["violations"] == []
    excused = report["suppressedViolations"]
    # Wildcards, each named in full, and builds whose variables have no key.
    wildcard = r"AwsSolutions-IAM5\[Resource::(\*|arn:aws:[a-z0-9-]+:.*[a-z].*\*)\]"
    for item in excused:
        rule = item["ruleName"]
        assert re.fullmatch(f"{wildcard}|AwsSolutions-CB4", rule), rule
        assert item["acknowledgedId"] == f"AwsSolutions::{rule}"
        assert len(item["reason"]) > 20
        for construct in item["violatingConstructs"]:
            ends = ("/Project",) if rule.endswith("CB4") else EXCUSED
            assert short(construct["constructPath"]).endswith(ends), construct
    assert len(excused) == 136


def test_without_keys_they_find_the_log_groups_as_well(tmp_path: Path):
    app = make_app(tmp_path, lines="", models=("scaled",))
    findings = found_by_packs(app)
    paths = logical_ids(Path(app.outdir))
    groups = {
        paths[file][logical_id]
        for file in paths
        for logical_id, resource in json.loads((Path(app.outdir) / file).read_text("utf-8"))[
            "Resources"
        ].items()
        if resource["Type"] == LOG_GROUP
    }
    # The guard's, two of the builds of images, the endpoint's and that of its function.
    assert len(groups) == 5
    more = {line for line in compare(findings, of_packs()) if not line.startswith("excused")}
    assert more == {
        f"found and not excused: {pack}-CloudWatchLogGroupEncrypted at {group}"
        for pack in PACKS.values()
        for group in groups - {"foundation/Guard/Log"}
    }


def test_the_packs_do_fire(tmp_path: Path):
    def with_open_bucket(name: str) -> cdk.App:
        app = new_app(tmp_path / name)
        s3.Bucket(cdk.Stack(app, "open"), "Bucket")
        return app

    expected = {Finding(f"{pack}-S3BucketLoggingEnabled", "open/Bucket") for pack in PACKS.values()}
    assert expected <= found_by_packs(with_open_bucket("packs"))
    report = nag(with_open_bucket("solutions"))
    assert report["conclusion"] == "failure"
    assert "AwsSolutions-S10" in {item["ruleName"] for item in report["violations"]}


def test_cfn_lint_and_the_cdks_own_validation_would_find_something(tmp_path: Path):
    path = tmp_path / "bad.template.json"
    resource = {"Type": "AWS::SageMaker::Endpoint", "Properties": {"EndpointNam": "x"}}
    path.write_text(json.dumps({"Resources": {"Endpoint": resource}}))
    assert {match.rule.id for match in lint([path])[path]} >= {"E3002", "E3003"}
    app = new_app(tmp_path / "app", validates=True)
    properties = {"RetentionInDays": 31, "Nope": 1}
    cdk.CfnResource(cdk.Stack(app, "bad"), "Group", type=LOG_GROUP, properties=properties)
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        app.synth()
    assert sorted(validation_findings(tmp_path / "app")) == ["F3002", "W3030"]


BOUNDARY = "arn:aws:iam::210987654321:policy/boundary"


def test_every_role_has_the_permissions_boundary(tmp_path: Path) -> None:
    app = make_app(
        tmp_path,
        lines=f"{KEYS}  permissions_boundary_arn: {BOUNDARY}\n",
        models=("scaled", "lmi-built", "lmi-partition"),
    )
    directory = Path(app.synth().directory)
    roles = {
        f"{file.name.partition('.')[0]}/{name}": resource["Properties"].get("PermissionsBoundary")
        for file in directory.glob("*.template.json")
        for name, resource in json.loads(file.read_text("utf-8"))["Resources"].items()
        if resource["Type"] == "AWS::IAM::Role"
    }
    stacks = {path.partition("/")[0] for path in roles}
    assert {"foundation", "scaled", "artifacts-lmi-partition", "image-lmi"} <= stacks
    assert [path for path, boundary in roles.items() if boundary != BOUNDARY] == []
    config = model_config()
    plan = plan_for(config, PRODUCTION.model_copy(update={"permissions_boundary_arn": BOUNDARY}))
    lines = dict(line.split(maxsplit=1) for line in describe_plan(plan).splitlines())
    assert lines["boundary"] == f"every role is limited by {BOUNDARY}"


SECTIONS = """
## Findings that remain

- cdk-nag: no section yet

### One

- cdk-nag: `Rule` (NIST, PCI)
- checkov: `CKV_AWS_1`
- resources: `NAME/Role`,
  `foundation/Guard`

Because.

### Another

- checkov: `CKV_AWS_2`
- resources: `image-FAMILY/Project`

Because.

## Another heading

### Three

- checkov: `CKV_AWS_3`
- resources: `NAME/Role`

Because.
"""


def test_a_section_excuses_its_rules_on_its_resources_alone():
    excused = list(excuses(SECTIONS))
    findings = {
        Finding(rule, path)
        for rule in ("NIST.800.53.R5-Rule", "PCI.DSS.321-Rule", "CKV_AWS_1")
        for path in ("gpt2/Role", "foundation/Guard")
    } | {Finding("CKV_AWS_2", "image-lmi/Project")}
    assert compare(findings, excused) == []
    others = {
        Finding("HIPAA.Security-Rule", "gpt2/Role"),
        Finding("CKV_AWS_1", "foundation/Role"),
        Finding("CKV_AWS_1", "image-lmi/Role"),
        Finding("CKV_AWS_1", "gpt2/Role/More"),
    }
    assert compare(findings | others, excused) == [
        f"found and not excused: {each.rule} at {each.path}" for each in sorted(others)
    ]
    assert compare(findings - {Finding("CKV_AWS_2", "image-lmi/Project")}, excused) == [
        "excused and not found: CKV_AWS_2 at image-FAMILY/Project"
    ]


def test_a_section_without_a_rule_is_an_error():
    section = "\n## Findings that remain\n\n### One\n\n- resources: `NAME/Role`\n\nBecause.\n"
    with pytest.raises(ValueError, match="One: rules \\[\\]"):
        list(excuses(section))


def test_every_reason_is_a_sentence_and_the_keys_are_those_of_the_page():
    page = PAGE.read_text("utf-8")
    assert all(len(each.reason) > 30 and each.reason.endswith(".") for each in excuses(page))
    assert all(line.split(":")[0].strip() in page for line in KEYS.splitlines())


# checkov, which calls nobody

PROGRAMS = BUILD / "checkov" / "bin"
# Python imports it at its start, and it writes down every connection and every name looked up.
WATCH = """\
import os, sys

def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo"):
        with open(os.environ["CONNECTIONS"], "a") as file:
            print(event, arguments[-1] if event == "socket.connect" else arguments[0], file=file)

sys.addaudithook(watch)
"""


def run(folder: Path, *command: str | Path) -> tuple[str, list[str]]:
    """Runs a program of checkov's environment in a folder without a key of its makers' platform.

    Returns its output and the connections that it made.
    """
    (folder / "sitecustomize.py").write_text(WATCH, encoding="utf-8")
    connections = folder / "connections"
    connections.write_text("", encoding="utf-8")
    done = subprocess.run(
        command,
        cwd=folder,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "PYTHONPATH": str(folder),
            "CONNECTIONS": str(connections),
            # It would ask PyPI for its newest version.
            "CKV_SKIP_PACKAGE_UPDATE_CHECK": "true",
        },
        capture_output=True,
        text=True,
        check=True,
        timeout=250,
    )
    return done.stdout, connections.read_text("utf-8").splitlines()


@pytest.mark.checkov
def test_a_connection_would_be_seen(tmp_path: Path):
    call = "import socket; socket.getaddrinfo('127.0.0.1', 9)"
    assert run(tmp_path, PROGRAMS / "python", "-c", call)[1] == ["socket.getaddrinfo 127.0.0.1"]


@pytest.mark.checkov
def test_checkov_finds_what_the_page_excuses_and_calls_nobody(tmp_path: Path):
    app = make_app(tmp_path)
    app.synth()
    templates = tmp_path / "templates"
    templates.mkdir()
    files = sorted(Path(app.outdir).glob("*.template.json"))
    for file in files:
        shutil.copy(file, templates)
    output, connections = run(
        tmp_path, PROGRAMS / "checkov", "--directory", "templates", "--framework",
        "cloudformation", "--output", "json", "--compact", "--soft-fail",
        # It would fetch guidelines from its makers' platform.
        "--skip-download",
    )  # fmt: skip
    report = json.loads(output)
    assert connections == []
    assert report["summary"]["parsing_errors"] == 0
    assert {Path(each["file_path"]).name for each in report["results"]["passed_checks"]} == {
        file.name for file in files
    }
    paths = logical_ids(Path(app.outdir))
    findings = {
        Finding(
            each["check_id"],
            paths[Path(each["file_path"]).name][each["resource"].rpartition(".")[2]],
        )
        for each in report["results"]["failed_checks"]
    }
    of_checkov = [each for each in excuses(PAGE.read_text("utf-8")) if each.rule.startswith("CKV_")]
    assert compare(findings, of_checkov) == []
