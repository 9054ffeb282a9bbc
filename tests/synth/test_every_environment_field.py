"""Every field of environments.yaml changes a template."""

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml

from slipway.config.environments import Environment
from slipway.project import Project
from slipway.stacks.assembly import Selection
from tests.support.projects import DIGEST, config_text, write_project
from tests.synth.assemblies import add_stacks, new_app
from tests.synth.field_bases import field_paths, put

ENVIRONMENT = "production"
MIRRORS = {
    "registry": "mirror.example.com/nvcr",
    "vpc": {
        "vpc_id": "vpc-0a1b2c3d",
        "subnet_ids": ["subnet-0a1b2c3d"],
        "security_group_ids": ["sg-0a1b2c3d"],
    },
}
BASE: Mapping[str, Any] = {
    "account": "210987654321",
    "region": "eu-west-1",
    "artifacts": "release",
    "image_builds": MIRRORS,
    "remote_publishing": {"time_limit_minutes": 60},
    "network": {
        "vpc_id": "vpc-0a1b2c3d",
        "subnet_ids": ["subnet-0a1b2c3d"],
        "vpc_endpoints": ["s3"],
        "route_table_ids": ["rtb-0a1b2c3d"],
    },
}
# Another value of each field, which must be seen in a template. A field without a row fails a test:
# nobody can add one that does nothing.
CHANGES: Mapping[str, Any] = {
    "name": "staging",
    "project": "search",
    "account": "111122223333",
    "region": "eu-central-1",
    "artifacts": "sample",
    "artifact_key_arn": (
        "arn:aws:kms:eu-west-1:210987654321:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    ),
    "artifact_readers": ["111122223333"],
    "log_key": "artifact",
    "notification_emails": ["on-call@example.com"],
    "permissions_boundary_arn": "arn:aws:iam::210987654321:policy/boundary",
    "captured_data_days": 30,
    "network.vpc_id": "vpc-4e5f6a7b",
    "network.subnet_ids": ["subnet-4e5f6a7b"],
    "network.security_group_ids": ["sg-4e5f6a7b"],
    "network.vpc_endpoints": ["s3", "sts"],
    "network.route_table_ids": ["rtb-4e5f6a7b"],
    "image_builds.repository_key": "artifact",
    "image_builds.registry": "mirror.example.com/other",
    "image_builds.index_url": "https://mirror.example.com/simple",
    "image_builds.python_url": "https://mirror.example.com/python",
    "image_builds.neuron_index_url": "https://mirror.example.com/neuron",
    "image_builds.ca_bundle": "certificates/mirror.pem",
    "image_builds.vpc.vpc_id": "vpc-4e5f6a7b",
    "image_builds.vpc.subnet_ids": ["subnet-4e5f6a7b"],
    "image_builds.vpc.security_group_ids": ["sg-4e5f6a7b"],
    "remote_publishing.compute": "2xlarge",
    "remote_publishing.time_limit_minutes": 30,
    "remote_publishing.weights": ["s3://weights/"],
    "remote_publishing.key_arns": [
        "arn:aws:kms:eu-west-1:210987654321:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    ],
    "remote_publishing.hub_url": "https://mirror.example.com/hub",
    "remote_publishing.hub_token_secret": (
        "arn:aws:secretsmanager:eu-west-1:210987654321:secret:hub-token-AbCdEf"
    ),
    "defaults.tags": {"team": "search"},
    "defaults.alarms": {"client_error_rate_percent": 5},
    "defaults.endpoint.log_retention_days": 90,
}


def test_every_field_has_a_row() -> None:
    found = {
        # The fields of a model's alarms, which `test_every_field` changes one by one.
        "defaults.alarms" if each.startswith("defaults.alarms.") else each
        for each in field_paths(Environment)
        # They refuse plans, and are in no template.
        if not each.startswith("policies.")
    }
    assert sorted(CHANGES) == sorted(found)


def environments_with(field_path: str | None) -> tuple[str, str]:
    """Returns an environment's name and environments.yaml, with one field changed."""
    content = copy.deepcopy(dict(BASE))
    name, project = ENVIRONMENT, {}
    if field_path == "name":
        name = CHANGES[field_path]
    elif field_path == "project":
        project = {field_path: CHANGES[field_path]}
    elif field_path is not None:
        put(content, field_path, CHANGES[field_path])
    return name, yaml.safe_dump({**project, name: content})


def write(root: Path, environments: str) -> Project:
    """Writes a project with a model, whose two artifacts differ."""
    write_project(
        root, {"model": config_text("model")}, published=["model"], environments=environments
    )
    (root / "certificates").mkdir()
    (root / "certificates" / "mirror.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    lock = root / "model_configs" / "model.lock.json"
    content = json.loads(lock.read_text("utf-8"))
    text = json.dumps(content["sample"]).replace(DIGEST, "12" * 32)
    lock.write_text(json.dumps({**content, "sample": json.loads(text)}), encoding="utf-8")
    return Project(root)


@pytest.mark.size("all")
def test_every_field_changes_a_template(tmp_path: Path) -> None:
    # Other tests have CloudFormation's rules check such templates, which takes most of a synthesis.
    app = new_app(tmp_path / "cdk.out")
    stages: dict[str | None, cdk.Stage] = {}
    # What is not changed is there twice, since a difference by the stage alone proves nothing.
    for index, field_path in enumerate([None, "", *CHANGES]):
        name, environments = environments_with(field_path or None)
        project = write(tmp_path / str(index), environments)
        stages[field_path] = cdk.Stage(app, f"stage{index}")
        add_stacks(stages[field_path], project, Selection(environment=name))  # type: ignore[arg-type]
    app.synth()

    def templates(stage: cdk.Stage) -> str:
        directory = Path(stage.outdir)
        found = sorted(directory.glob("*.template.json"))
        text = "".join(path.read_text("utf-8") for path in found)
        # Of the foundation, of the image and of the model; a model with a problem has none.
        assert len(found) == 3
        assert '"AWS::SageMaker::Endpoint"' in text
        return text.replace(stage.stage_name, "STAGE")

    unchanged = templates(stages[None])
    assert templates(stages[""]) == unchanged
    unseen = [name for name in CHANGES if templates(stages[name]) == unchanged]
    assert unseen == []
