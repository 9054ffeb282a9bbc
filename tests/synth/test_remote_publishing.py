"""The build project that publishes next to S3, and what its role may do."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from slipway.config.sections.image_builds import ImageBuilds
from slipway.config.sections.remote_publishing import RemotePublishing
from tests.support.prepared_accounts import synthesised_foundation
from tests.support.projects import PRODUCTION
from tests.synth.assemblies import Assembly
from tests.synth.image_stacks import statements

NAMED = "arn:aws:secretsmanager:eu-west-1:210987654321:secret:hub-token-AbCdEf"
KEY = "arn:aws:kms:eu-west-1:210987654321:key/1234abcd-12ab-34cd-56ef-1234567890ab"
NETWORK = {
    "index_url": "https://mirror.example.com/simple",
    "vpc": {
        "vpc_id": "vpc-0a1b2c3d",
        "subnet_ids": ["subnet-0a1b2c3d"],
        "security_group_ids": ["sg-0a1b2c3d"],
    },
}


def foundation(directory: Path, **settings: Any) -> Assembly:
    synthesised_foundation(PRODUCTION.model_copy(update=settings), directory)
    return Assembly(directory)


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """The foundation with every setting."""
    settings = RemotePublishing(
        compute="2xlarge",
        time_limit_minutes=600,
        weights=("s3://weights/", "s3://more/models/"),
        key_arns=(KEY,),
        hub_url="https://mirror.example.com/hub",
        hub_token_secret=NAMED,
    )
    mirrors = ImageBuilds.model_validate(NETWORK)
    directory = tmp_path_factory.mktemp("cdk.out")
    return foundation(directory, remote_publishing=settings, image_builds=mirrors)


@pytest.fixture(scope="module")
def rights(assembly: Assembly) -> dict[str, dict[str, Any]]:
    _, role = assembly.named("foundation", "AWS::IAM::Role", "RemotePublishingBuildRole")
    (trust,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Condition"]["StringEquals"] == {"aws:SourceAccount": PRODUCTION.account}
    (source,) = trust["Condition"]["ArnLike"].values()
    assert PRODUCTION.publish_project in json.dumps(source)
    assert trust["Principal"] == {"Service": "codebuild.amazonaws.com"}
    return statements(assembly, "foundation", "codebuild")


def test_the_project_has_the_settings_and_no_secret(assembly: Assembly) -> None:
    project = assembly.only("foundation", "AWS::CodeBuild::Project")
    properties = project["Properties"]
    assert properties["Name"] == "slipway-production-publish"
    assert properties["TimeoutInMinutes"] == 600
    environment = properties["Environment"]
    assert environment["ComputeType"] == "BUILD_GENERAL1_2XLARGE"
    assert environment.get("PrivilegedMode", False) is False
    assert environment["EnvironmentVariables"] == [
        {
            "Name": "PIP_INDEX_URL",
            "Type": "PLAINTEXT",
            "Value": "https://mirror.example.com/simple",
        },
        {"Name": "HF_ENDPOINT", "Type": "PLAINTEXT", "Value": "https://mirror.example.com/hub"},
        {"Name": "HF_TOKEN", "Type": "SECRETS_MANAGER", "Value": NAMED},
    ]
    assert properties["VpcConfig"]["VpcId"] == "vpc-0a1b2c3d"
    specification = json.loads(properties["Source"]["BuildSpec"])
    commands = specification["phases"]["install"]["commands"]
    # Nothing of the source runs before the check of its digest.
    assert commands[0].startswith("python -I -c ")
    assert "SLIPWAY_SOURCE" in commands[0]
    assert any("--require-hashes" in command for command in commands)


def test_certificates_of_mirrors_are_trusted_beside_the_public_ones(
    assembly: Assembly, tmp_path: Path
) -> None:
    project = assembly.only("foundation", "AWS::CodeBuild::Project")
    specification = json.loads(project["Properties"]["Source"]["BuildSpec"])
    commands = specification["phases"]["install"]["commands"]
    own = [command for command in commands if command.startswith("if ")]
    assert len(own) == 2
    (tmp_path / "mirrors.pem").write_text("MIRROR\n")
    shown = 'echo "$PIP_CERT"; echo "$SSL_CERT_FILE"'
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PIP_INDEX_URL": "https://mirror.example.com/simple",
    }
    said = subprocess.run(
        ["sh", "-euc", "\n".join([*own, shown])],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert said == [str(tmp_path / "mirrors.pem"), str(tmp_path / "certificates.pem")]
    trusted = (tmp_path / "certificates.pem").read_text("utf-8")
    assert trusted.endswith("\nMIRROR\n")
    assert "BEGIN CERTIFICATE" in trusted


def test_the_role_may_read_what_the_environment_names(rights: dict[str, dict[str, Any]]) -> None:
    assert rights["ReadToken"]["Action"] == "secretsmanager:GetSecretValue"
    assert rights["ReadToken"]["Resource"] == NAMED
    assert rights["DecryptWeights"]["Resource"] == KEY
    assert "more/models/*" in json.dumps(rights["ReadWeights1"]["Resource"])
    assert rights["FindWeights1"]["Condition"] == {"StringLike": {"s3:prefix": "models/*"}}
    assert rights["PassCompileRole"]["Condition"] == {
        "StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}
    }


def test_the_role_deletes_nothing_and_has_no_wildcard_action(
    rights: dict[str, dict[str, Any]],
) -> None:
    actions = [
        action
        for each in rights.values()
        for action in (each["Action"] if isinstance(each["Action"], list) else [each["Action"]])
    ]
    assert [action for action in actions if "*" in action] == []
    # CodeBuild deletes the interfaces that it makes for a build.
    assert [each for each in actions if "Delete" in each] == ["ec2:DeleteNetworkInterface"]
    # Only the interfaces of a VPC have no narrower resource.
    everywhere = [sid for sid, each in rights.items() if each["Resource"] == "*"]
    assert everywhere == ["ManageNetworkInterfaces"]


def test_sources_and_results_expire(assembly: Assembly) -> None:
    rules = [
        rule
        for bucket in assembly.resources("foundation", "AWS::S3::Bucket").values()
        for rule in bucket["Properties"]["LifecycleConfiguration"]["Rules"]
        if rule.get("Prefix") == "remote/"
    ]
    assert rules == [{"ExpirationInDays": 14, "Prefix": "remote/", "Status": "Enabled"}]


def test_without_the_setting_there_is_nothing_of_it(tmp_path: Path) -> None:
    text = foundation(tmp_path).template_file("foundation").read_text("utf-8")
    assert "CodeBuild" not in text
    assert "remote/" not in text


def test_the_smallest_setting_gives_no_right_on_weights(tmp_path: Path) -> None:
    assembly = foundation(tmp_path, remote_publishing=RemotePublishing())
    project = assembly.only("foundation", "AWS::CodeBuild::Project")
    assert project["Properties"]["Environment"].get("EnvironmentVariables", []) == []
    assert "VpcConfig" not in project["Properties"]
    text = assembly.template_file("foundation").read_text("utf-8")
    assert "ReadWeights0" not in text
    assert "secretsmanager" not in text
