"""Variants that serve models of their own."""

from pathlib import Path

import pytest

from slipway.errors import UserError
from slipway.planning.plan import DeploymentPlan
from slipway.project import Project
from tests.support.projects import PRODUCTION, config_text, lock_variants, write_project

VARIANTS = """\
endpoint:
  variants:
    - {name: stable, weight: 9}
    - name: candidate
      weight: 1
"""
OTHER = "      artifacts: {release: {path: build/candidate}}\n"


def project(root: Path, lines: str, *edits: tuple[str, str]) -> Project:
    text = config_text("tiny", ("endpoint:\n", lines), *edits)
    return Project(write_project(root, {"tiny": text}))


def plan(found: Project) -> DeploymentPlan:
    return found.plan("tiny", PRODUCTION, allow_unpublished=True)


def reported(found: Project) -> list[str]:
    with pytest.raises(UserError) as caught:
        plan(found)
    return str(caught.value).splitlines()[1:]


def test_what_a_variant_does_not_say_is_the_endpoints(tmp_path: Path):
    made = plan(project(tmp_path, f"{VARIANTS}      serving: {{max_batch_size: 4}}\n"))
    stable, candidate = made.variants
    assert (stable.own, candidate.instance_count) == (None, 2)
    assert candidate.own is not None
    changed = made.container_environment | {"SLIPWAY_MAX_BATCH_SIZE": "4"}
    assert candidate.own.container_environment == changed
    assert made.every_served == (made, candidate.own)


def test_another_container_leaves_nothing_of_the_endpoints(tmp_path: Path):
    image = "210987654321.dkr.ecr.eu-west-1.amazonaws.com/other:1"
    own = f"      serving: {{container: custom, image_uri: '{image}'}}\n"
    made = plan(project(tmp_path, VARIANTS + own))
    candidate = made.variants[1].own
    assert candidate is not None
    assert candidate.image.uri == image
    assert not any(name.startswith("SLIPWAY") for name in candidate.container_environment)
    assert [each.code for each in made.warnings if "form" in each.code] == [
        "variants-differ-in-form"
    ]


def test_a_problem_is_on_the_variants_line_and_a_shared_one_is_told_once(tmp_path: Path):
    own = "      serving: {max_new_tokens: 1000, default_new_token: 3}\n"
    wrong = ("model_latency_p99_milliseconds: 600", "model_latency_p99_milliseconds: -1")
    lines = reported(project(tmp_path, VARIANTS + own, wrong))
    places = [line.split(": ")[:2] for line in lines if line.startswith("- ")]
    assert places == [
        ["- model_configs/tiny.yaml:27:39", "serving.default_new_token"],
        ["- model_configs/tiny.yaml:34:3", "alarms.model_latency_p99_milliseconds"],
    ]


def test_the_rules_judge_each_model_on_its_own_instances(tmp_path: Path):
    own = "      instances: [ml.g5.xlarge]\n      serving: {default_new_tokens: 99}\n"
    lines = reported(project(tmp_path, VARIANTS + own))
    assert [line.partition(" the ")[0] for line in lines if line.startswith("- ")] == [
        # The engine is the endpoint's, and the candidate's instances have another GPU.
        "- model_configs/tiny.yaml:20:5: artifacts.release.target:",
        "- model_configs/tiny.yaml:28:17: serving.default_new_tokens:",
    ]


def test_one_variant_serves_the_files_model(tmp_path: Path):
    lines = VARIANTS.replace("9}", "9, serving: {max_batch_size: 2}}") + OTHER
    assert "every variant has a model of its own" in reported(project(tmp_path, lines))[0]


def test_the_lock_has_each_model_and_a_lock_without_variants_stays_as_it_is(tmp_path: Path):
    found = project(tmp_path, VARIANTS + OTHER)
    before = found.lock("tiny").render()
    assert "variants" not in before
    lock_variants(tmp_path, "tiny", "production")
    lock = found.lock("tiny")
    names = found.published_names("tiny", PRODUCTION)
    assert names == ["tiny", "tiny@candidate"]
    of_file, candidate = (lock.artifact(found.deployment(each, PRODUCTION)) for each in names)
    assert of_file is None
    assert candidate is not None
    assert (lock.variants or {})["candidate"].release == candidate


def test_each_model_that_is_not_published_is_named(tmp_path: Path):
    found = project(tmp_path, VARIANTS + OTHER)
    with pytest.raises(UserError) as caught:
        found.plan("tiny", PRODUCTION)
    assert [str(each.location) for each in caught.value.problems] == [
        "model_configs/tiny.yaml:18:3",
        "model_configs/tiny.yaml:27:19",
    ]


def test_the_files_of_all_variants_are_in_one_place(tmp_path: Path):
    own = "      artifacts: {isolated: true}\n"
    assert (
        "`isolated` is the same for all models of the endpoint"
        in reported(project(tmp_path, VARIANTS + own))[0]
    )


def test_models_that_differ_in_the_plan_alone_are_one_in_sagemaker(tmp_path: Path):
    made = plan(project(tmp_path, f"{VARIANTS}      model: {{parameters: 774030080}}\n"))
    candidate = made.variants[1]
    assert candidate.own is not None
    assert candidate.own.memory != made.memory
    assert made.served_by(candidate) is made
