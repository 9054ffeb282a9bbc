"""Log groups and repositories with a customer key: which one, and in every stack."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slipway.project import Project
from tests.support.projects import ENVIRONMENTS, config_text, write_project
from tests.synth.assemblies import Assembly, synthesised

IMAGES = "image-tensorrt"
STACKS = ("foundation", IMAGES, "model")
LOG_GROUP = "AWS::Logs::LogGroup"
KEY = "arn:aws:kms:eu-west-1:210987654321:key/1234abcd-12ab-34cd-56ef-1234567890ab"
OTHER_KEY = "arn:aws:kms:eu-west-1:210987654321:key/5678ef01-12ab-34cd-56ef-1234567890ab"
OF_THE_FOUNDATION = {"Ref": "ArtifactKeyArn"}

Synthesise = Callable[[str], Assembly]


@pytest.fixture
def synthesise(tmp_path: Path) -> Synthesise:
    def synthesise(lines: str) -> Assembly:
        root, outdir = tmp_path / "project", tmp_path / "cdk.out"
        write_project(
            root, {"model": config_text("model")}, published=["model"],
            environments=ENVIRONMENTS + lines,
        )  # fmt: skip
        # Other tests run the CDK's own checks of these templates, which take seconds.
        return synthesised(Project(root), outdir, environment="production", models=("model",))

    return synthesise


def log_keys(assembly: Assembly, stack: str) -> list[Any]:
    return [
        group["Properties"].get("KmsKeyId")
        for group in assembly.resources(stack, LOG_GROUP).values()
    ]


def encryption(assembly: Assembly) -> Any:
    repository = assembly.only(IMAGES, "AWS::ECR::Repository")
    return repository["Properties"]["EncryptionConfiguration"]


def test_without_the_fields_aws_encrypts_with_keys_of_its_own(synthesise: Synthesise) -> None:
    assembly = synthesise("")
    assert {stack: log_keys(assembly, stack) for stack in STACKS} == {
        "foundation": [None],
        IMAGES: [None, None],
        "model": [None, None],
    }
    assert encryption(assembly) == {"EncryptionType": "AES256"}
    assert "foundation" not in assembly.stacks()[IMAGES]["dependencies"]


def test_the_artifact_key_encrypts_what_is_made_after_it(synthesise: Synthesise) -> None:
    assembly = synthesise("  log_key: artifact\n  image_builds: {repository_key: artifact}\n")
    assert {stack: log_keys(assembly, stack) for stack in STACKS} == {
        # The guard, for which even the key waits.
        "foundation": [None],
        IMAGES: [OF_THE_FOUNDATION, OF_THE_FOUNDATION],
        "model": [OF_THE_FOUNDATION, OF_THE_FOUNDATION],
    }
    assert encryption(assembly) == {"EncryptionType": "KMS", "KmsKey": OF_THE_FOUNDATION}
    for stack in (IMAGES, "model"):
        parameter = assembly.template(stack)["Parameters"]["ArtifactKeyArn"]
        assert parameter["Default"] == "/slipway/production/artifact-key-arn"
        assert "foundation" in assembly.stacks()[stack]["dependencies"]


def test_an_artifact_key_that_is_known_encrypts_the_guards_log_as_well(
    synthesise: Synthesise,
) -> None:
    assembly = synthesise(f"  artifact_key_arn: {KEY}\n  log_key: artifact\n")
    assert log_keys(assembly, "foundation") == [KEY]
    assert log_keys(assembly, "model") == [OF_THE_FOUNDATION, OF_THE_FOUNDATION]


def test_a_key_of_ones_own_is_in_every_log_group(synthesise: Synthesise) -> None:
    assembly = synthesise(f"  log_key: {KEY}\n  image_builds: {{repository_key: {OTHER_KEY}}}\n")
    for stack in STACKS:
        assert set(log_keys(assembly, stack)) == {KEY}
    assert encryption(assembly) == {"EncryptionType": "KMS", "KmsKey": OTHER_KEY}
    assert "foundation" not in assembly.stacks()[IMAGES]["dependencies"]


def test_the_foundations_key_lets_cloudwatch_logs_use_it_for_its_own_account(
    synthesise: Synthesise,
) -> None:
    key = synthesise("").only("foundation", "AWS::KMS::Key")
    statements = key["Properties"]["KeyPolicy"]["Statement"]
    (statement,) = [each for each in statements if each.get("Sid") == "LogGroups"]
    context = statement["Condition"]["ArnLike"]["kms:EncryptionContext:aws:logs:arn"]
    assert context == "arn:aws:logs:eu-west-1:210987654321:log-group:*"
    suffix = {"Ref": "AWS::URLSuffix"}
    assert statement["Principal"] == {"Service": {"Fn::Join": ["", ["logs.eu-west-1.", suffix]]}}
