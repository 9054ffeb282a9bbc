"""cdk-nag's packs for NIST 800-53, HIPAA and PCI find what docs/security.md excuses, no more."""

import json
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from cdk_nag import HIPAASecurityChecks, NIST80053R5Checks, PCIDSS321Checks

from tests.synth.scanners import nag
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
    short,
)

LOG_GROUP = "AWS::Logs::LogGroup"


def found_by_packs(app: cdk.App) -> set[Finding]:
    """Synthesises an app and returns what the three packs find in it."""
    packs = NIST80053R5Checks(app), HIPAASecurityChecks(app), PCIDSS321Checks(app)
    cdk.Validations.of(app).add_plugins(*packs)
    try:
        app.synth()
    except RuntimeError as error:
        assert "ValidationFailed" in str(error)  # noqa: PT017  # synthesis passes without findings
    report = json.loads((Path(app.outdir) / "validation-report.json").read_text("utf-8"))
    plugins = {each["pluginName"]: each for each in report["pluginReports"]}
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
    app = make_app(tmp_path)
    assert nag(app, Path(app.outdir))["violations"] == []


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
    app = cdk.App(
        outdir=str(tmp_path), analytics_reporting=False, builtin_cloud_formation_validation=False
    )
    s3.Bucket(cdk.Stack(app, "open"), "Bucket")
    expected = {Finding(f"{pack}-S3BucketLoggingEnabled", "open/Bucket") for pack in PACKS.values()}
    assert expected <= found_by_packs(app)


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
