"""Log groups and repositories with a customer key: which one, and in every stack."""

from pathlib import Path
from typing import Any

import pytest

from slipway.project import Project
from tests.support.projects import ENVIRONMENTS, config_text, write_project
from tests.synth.assemblies import synthesised

IMAGES = "image-tensorrt"
KEY = "arn:aws:kms:eu-west-1:210987654321:key/1234abcd-12ab-34cd-56ef-1234567890ab"
OTHER_KEY = "arn:aws:kms:eu-west-1:210987654321:key/5678ef01-12ab-34cd-56ef-1234567890ab"
OF_THE_FOUNDATION = {"Ref": "ArtifactKeyArn"}


AES = {"EncryptionType": "AES256"}


@pytest.mark.parametrize(
    ("lines", "of_guard", "of_others", "repository"),
    [
        ("", None, None, AES),
        # For the guard even the key waits, unless it is known.
        ("log_key: artifact", None, OF_THE_FOUNDATION, AES),
        (f"artifact_key_arn: {KEY}\n  log_key: artifact", KEY, OF_THE_FOUNDATION, AES),
        ("image_builds: {repository_key: artifact}", None, None,
         {"EncryptionType": "KMS", "KmsKey": OF_THE_FOUNDATION}),
        (f"log_key: {KEY}\n  image_builds: {{repository_key: {OTHER_KEY}}}", KEY, KEY,
         {"EncryptionType": "KMS", "KmsKey": OTHER_KEY}),
    ],
    ids=["none", "artifact", "artifact that is known", "repository", "others"],
)  # fmt: skip
def test_a_key_is_in_every_log_group_and_in_the_repository(
    tmp_path: Path, lines: str, of_guard: Any, of_others: Any, repository: Any
) -> None:
    root = tmp_path / "project"
    models, environments = {"model": config_text("model")}, f"{ENVIRONMENTS}  {lines}\n"
    write_project(root, models, published=["model"], environments=environments)
    # Other tests run the CDK's own checks of these templates, which take seconds.
    assembly = synthesised(Project(root), tmp_path / "cdk.out", environment="production")
    keys = {
        stack: [each["Properties"].get("KmsKeyId") for each in groups.values()]
        for stack in ("foundation", IMAGES, "model")
        if (groups := assembly.resources(stack, "AWS::Logs::LogGroup"))
    }
    assert keys == {"foundation": [of_guard], IMAGES: [of_others] * 2, "model": [of_others] * 2}
    made = assembly.only(IMAGES, "AWS::ECR::Repository")["Properties"]
    assert made["EncryptionConfiguration"] == repository
    needs_foundation = OF_THE_FOUNDATION in (of_others, repository.get("KmsKey"))
    assert ("foundation" in assembly.stacks()[IMAGES]["dependencies"]) == needs_foundation
    parameters = assembly.template(IMAGES)["Parameters"]
    assert ("ArtifactKeyArn" in parameters) == needs_foundation
    if needs_foundation:
        assert parameters["ArtifactKeyArn"]["Default"] == "/slipway/production/artifact-key-arn"
