"""`slipway upgrade --check` from a version that was a clone, with its code beside the configs."""

import subprocess
import sys
from pathlib import Path

import pytest

from slipway.operations.upgrading import check_upgrade
from slipway.operations.versions import Version, installed
from slipway.planning.review import ModelReview
from slipway.project import Project
from tests.support.pages import ROOT

pytestmark = pytest.mark.size("deep")

# The last commit before everything became part of the package `slipway`, and of much else.
BEFORE = "bfdef1c5"
AWS_IMAGES = ("flan-t5-xxl", "flan-ul2", "gpt-j-6b", "qwen2-7b-trtllm", "qwen2-7b-vllm")
OWN_IMAGES = ("bert-qa-inf2", "bert-qa-latency", "gpt2-autocomplete", "t5-spelling")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModelReview]:
    clone = tmp_path_factory.mktemp("clone")
    archive = subprocess.run(["git", "-C", ROOT, "archive", BEFORE], capture_output=True)
    assert archive.returncode == 0, f"run `git fetch --unshallow`: there is no commit {BEFORE}"
    subprocess.run(["tar", "-x", "-C", clone], input=archive.stdout, check=True)
    # Both versions run with the tests' packages: an installation would need an index.
    before = Version("before", Path(sys.executable), clone)
    review = check_upgrade(Project(ROOT), before, installed(), ["ci"])
    assert review.problems == ()
    return {each.model: each for each in review.models}


def test_images_of_slipway_bring_new_fleets_and_images_of_aws_do_not(
    found: dict[str, ModelReview],
) -> None:
    for name in OWN_IMAGES:
        assert found[name].verdict == "new fleet"
        effects = found[name].consequences.effects  # type: ignore[union-attr]
        assert effects[0].setting == "AWS::SageMaker::Model is made anew"
        assert "/slipway/" in (effects[0].after or "")
        assert "start beside the old fleet" in found[name].reason
    for name in (*AWS_IMAGES, "foundation", "image-tensorrt", "image-neuron", "image-triton"):
        assert found[name].verdict == "in place"


def test_what_is_new_beside_the_fleets_is_named(found: dict[str, ModelReview]) -> None:
    review = found["qwen2-7b-vllm"]
    settings = [each.setting for each in review.consequences.effects]  # type: ignore[union-attr]
    assert "AWS::CloudWatch::Dashboard is added" in settings
    assert [(each.is_wider, each.text.partition(" on ")[0]) for each in review.reach] == [
        (True, "sagemaker:ListTags"),
        (False, "sts:AssumeRole"),
    ]


def test_configs_with_newer_fields_are_unknown_to_it(found: dict[str, ModelReview]) -> None:
    assert found["qwen3-8b"].verdict == "unknown"
    assert "model_configs/qwen3-8b.yaml:6:3: model.family" in found["qwen3-8b"].reason
