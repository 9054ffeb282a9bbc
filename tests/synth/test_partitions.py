"""Templates for the partitions of China and of the US government, linted for their regions."""

from pathlib import Path

import pytest

from slipway.project import Project
from tests.support.linting import lint
from tests.support.projects import config_text, write_project
from tests.synth.assemblies import AUTOSCALING, synthesised

ENVIRONMENT = """\
there:
  account: "210987654321"
  region: {region}
  notification_emails: [on-call@example.com]
"""
STACKS = ("foundation", "image-tensorrt", "scaled")


@pytest.mark.size("all")
@pytest.mark.parametrize(
    ("partition", "region"), [("aws-cn", "cn-north-1"), ("aws-us-gov", "us-gov-west-1")]
)
def test_templates_name_their_own_partition_and_lint(
    tmp_path: Path, partition: str, region: str
) -> None:
    root = write_project(
        tmp_path / "project",
        {"scaled": config_text("scaled", AUTOSCALING)},
        published=["scaled"],
        environments=ENVIRONMENT.format(region=region),
    )
    directory = tmp_path / "cdk.out"
    # cfn-lint takes the place of the CDK's own check, which knows no regions.
    assembly = synthesised(Project(root), directory, environment="there")
    assert set(assembly.stacks()) == set(STACKS)
    for construct_id in STACKS:
        assert assembly.annotations(construct_id, "error") == []
        text = assembly.template_file(construct_id).read_text("utf-8")
        assert "arn:aws:" not in text
        assert f"arn:{partition}:" in text
    found = lint([assembly.template_file(construct_id) for construct_id in STACKS], region)
    assert [str(match) for matches in found.values() for match in matches] == []
