"""`slipway iam` names the roles that the CDK CLI assumes for an app."""

import json
from pathlib import Path

from slipway.project import Project
from slipway.rights.pipeline import least_policy
from tests.support.projects import PRODUCTION, config_text, write_project
from tests.synth.assemblies import synthesised


def test_the_policy_has_the_roles_of_the_assembly_and_no_other(tmp_path: Path):
    root = tmp_path / "project"
    write_project(root, {"model": config_text("model")}, published=["model"])
    project = Project(root)
    synthesised(project, tmp_path / "cdk.out", environment="production", models=("model",))
    named: set[str] = set()

    def look(value: object) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                if key in ("assumeRoleArn", "arn") and isinstance(item, str):
                    named.add(item)
                look(item)
        elif isinstance(value, list):
            for item in value:
                look(item)

    for file in (tmp_path / "cdk.out").glob("*.json"):
        if file.name == "manifest.json" or file.name.endswith(".assets.json"):
            look(json.loads(file.read_text("utf-8")))
    policy = least_policy(project.plan("model", PRODUCTION), PRODUCTION, [(None, None)])
    (deploy,) = (each for each in policy["Statement"] if each["Sid"] == "Deploy")
    assert {arn.replace("${AWS::Partition}", "aws") for arn in named} == set(deploy["Resource"])
