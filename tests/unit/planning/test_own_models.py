"""Variants, and fallback types of a pool, that serve models of their own."""

from dataclasses import replace
from pathlib import Path

import pytest

from slipway.errors import Problem, UserError
from slipway.planning.bill import bill_of
from slipway.planning.compiling import CompilePlan
from slipway.planning.consequences import Consequence, consequences
from slipway.planning.lock import LockedPart
from slipway.planning.plan import DeploymentPlan
from slipway.planning.review import review
from slipway.project import Project
from slipway.publishing.compiled import compile_recipe
from tests.support.golden_cases import CASES, make_plan
from tests.support.projects import DIGEST, PRODUCTION, config_text, lock_variants, write_project

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


def problems(found: Project, *, allow_unpublished: bool = True) -> list[Problem]:
    with pytest.raises(UserError) as caught:
        found.plan("tiny", PRODUCTION, allow_unpublished=allow_unpublished)
    return list(caught.value.problems)


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
    found = problems(project(tmp_path, VARIANTS + own, wrong))
    assert [(str(each.location), each.field[-1]) for each in found] == [
        ("model_configs/tiny.yaml:27:39", "default_new_token"),
        ("model_configs/tiny.yaml:34:3", "model_latency_p99_milliseconds"),
    ]


def test_the_rules_judge_each_model_on_its_own_instances(tmp_path: Path):
    own = "      instances: [ml.g5.xlarge]\n      serving: {default_new_tokens: 99}\n"
    found = problems(project(tmp_path, VARIANTS + own))
    assert [(str(each.location), each.field[-1]) for each in found] == [
        # The engine is the endpoint's, and the candidate's instances have another GPU.
        ("model_configs/tiny.yaml:20:5", "target"),
        ("model_configs/tiny.yaml:28:17", "default_new_tokens"),
    ]


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
    assert [str(each.location) for each in problems(found, allow_unpublished=False)] == [
        "model_configs/tiny.yaml:18:3",
        "model_configs/tiny.yaml:27:19",
    ]


def test_models_that_differ_in_the_plan_alone_are_one_in_sagemaker(tmp_path: Path):
    made = plan(project(tmp_path, f"{VARIANTS}      model: {{parameters: 774030080}}\n"))
    candidate = made.variants[1]
    assert candidate.own is not None
    assert candidate.own.memory != made.memory
    assert made.served_by(candidate) is made


POOL = ("[ml.g4dn.xlarge]", "[ml.g4dn.xlarge, ml.g5.xlarge]")
OVERRIDE = """\
endpoint:
  model_overrides:
    - instances: [ml.g5.xlarge]
"""
ENGINE = "      artifacts: {release: {path: build/sm86, target: sm86}}\n"
COMPILED = (
    "  release:\n    path: build/tiny\n    target: sm75\n",
    "  weights: {source: path, path: build/gpt2}\n  compile: {instance: ml.g4dn.xlarge}\n",
)


def pool(root: Path, lines: str, *edits: tuple[str, str]) -> Project:
    return project(root, lines, POOL, *edits)


def test_each_target_is_published_compiled_and_locked(tmp_path: Path):
    compile_there = "      artifacts: {compile: {instance: ml.g5.2xlarge}}\n"
    found = pool(tmp_path, OVERRIDE + compile_there, COMPILED)
    names = found.published_names("tiny", PRODUCTION)
    assert names == ["tiny", "tiny@ml.g5.xlarge"]
    deployments = [found.deployment(each, PRODUCTION) for each in names]
    assert [each.compile_target for each in deployments] == ["sm75", "sm86"]
    made = plan(found)
    (override,) = made.overrides
    assert override.own is not None
    assert made.every_served == (made, override.own)
    jobs = [
        each.compile_plan(served.image)
        for each, served in zip(deployments, made.every_served, strict=True)
    ]
    assert [each.instance_type for each in jobs if isinstance(each, CompilePlan)] == [
        "ml.g4dn.xlarge",
        "ml.g5.2xlarge",
    ]
    weights = LockedPart(digest=DIGEST, size_bytes=1, file_count=1, source="a", target="any")
    keys = {compile_recipe(each, weights).key for each in jobs if isinstance(each, CompilePlan)}
    assert len(keys) == 2  # no job's engine is taken for another's
    lock_variants(tmp_path, "tiny", "production")
    locked = found.lock("tiny").artifact(deployments[1])
    assert locked is not None
    assert locked.compiled is not None
    assert locked.compiled.target == "sm86"


def test_a_missing_pool_is_told_and_ends_no_rule(tmp_path: Path):
    (found,) = problems(pool(tmp_path, "endpoint:\n", (f"  instances: {POOL[1]}\n", "")))
    assert (found.code, found.message) == ("SW107", "required field is missing")


def test_a_lock_without_the_engine_of_a_type_is_refused_in_its_place(tmp_path: Path):
    found = problems(pool(tmp_path, OVERRIDE + ENGINE), allow_unpublished=False)
    assert [(each.code, str(each.location)) for each in found] == [
        ("SW404", "model_configs/tiny.yaml:18:3"),
        ("SW825", "model_configs/tiny.yaml:24:19"),
    ]
    assert "no release of this config for ml.g5.xlarge" in found[1].message
    assert "Run `slipway publish tiny --env production`" in found[1].remedy


def test_an_engine_for_another_gpu_is_refused_in_its_place(tmp_path: Path):
    (found,) = problems(pool(tmp_path, OVERRIDE + ENGINE.replace("sm86}", "sm89}")))
    assert (found.code, str(found.location)) == ("SW394", "model_configs/tiny.yaml:25:47")


TRITON = """\
[ml.g5.xlarge, ml.g6.xlarge]
  model_overrides:
    - instances: [ml.g6.xlarge]
      artifacts: {release: {path: build/sm89, target: sm89}}"""
NEURON = """\
[ml.inf2.xlarge, ml.trn1.2xlarge]
  model_overrides:
    - instances: [ml.trn1.2xlarge]
      artifacts: {release: {path: build/trn1, target: trn1}}"""
INF1 = """\
[ml.inf2.xlarge, ml.inf1.xlarge]
  model_overrides:
    - instances: [ml.inf1.xlarge]
      serving: {framework: neuron}
      artifacts: {release: {path: build/inf1, target: inf1}}"""


def of_case(root: Path, case: str, instances: str, pool: str) -> Project:
    text = (CASES / f"{case}.yaml").read_text("utf-8").replace(f"[{instances}]", pool)
    root.mkdir(exist_ok=True)
    text = text.removeprefix("# environment: production\n").replace("target: sm75", "target: sm86")
    return Project(write_project(root, {case: text}))


def targets(found: Project, case: str) -> list[str | None]:
    found.plan(case, PRODUCTION, allow_unpublished=True)
    names = found.published_names(case, PRODUCTION)
    return [found.deployment(each, PRODUCTION).compile_target for each in names]


def test_triton_and_neuron_fall_back_in_the_same_way(tmp_path: Path):
    triton = of_case(tmp_path / "triton", "triton-tensorrt", "ml.g4dn.xlarge", TRITON)
    assert targets(triton, "triton-tensorrt") == ["sm86", "sm89"]
    neuron = of_case(tmp_path / "neuron", "neuron-inf2", "ml.inf2.xlarge", NEURON)
    assert targets(neuron, "neuron-inf2") == ["inf2", "trn1"]


def test_inf1_and_inf2_share_no_pool(tmp_path: Path):
    found = of_case(tmp_path, "neuron-inf2", "ml.inf2.xlarge", INF1)
    with pytest.raises(
        UserError, match=r"ml\.inf1\.xlarge needs no host image, and that of ml\.inf2"
    ):
        found.plan("neuron-inf2", PRODUCTION, allow_unpublished=True)


def test_a_pool_has_one_host_image(tmp_path: Path):
    image = "210987654321.dkr.ecr.eu-west-1.amazonaws.com/other:1"
    own = f"      serving: {{container: custom, image_uri: '{image}'}}\n"
    (found,) = problems(pool(tmp_path, OVERRIDE + own + ENGINE))
    assert (found.code, str(found.location)) == ("SW312", "model_configs/tiny.yaml:24:7")


def test_a_variant_waits_for_the_slowest_model_of_its_pool(tmp_path: Path):
    large = (
        "      model: {parameters: 6000000000}\n"
        "      artifacts: {size_gb: 90, release: {path: build/sm86, target: sm86}}\n"
    )
    given = ("  model_data_download_timeout_seconds: 600\n", "")
    made = plan(pool(tmp_path, OVERRIDE + large, given))
    assert made.variants[0].model_data_download_timeout_seconds > 600


def test_a_new_engine_of_a_type_is_a_new_fleet_and_named(tmp_path: Path):
    after = make_plan("pool-of-two-engines", tmp_path)
    (override,) = after.overrides
    artifact = replace(override.own.artifact, digest="cd" * 32, target="sm86")
    own = replace(override.own, artifact=artifact)
    before = replace(after, overrides=(replace(override, own=own),))
    found = consequences(before, after)
    assert [(each.setting, each.consequence) for each in found.effects] == [
        ("artifact of ml.g5.xlarge", Consequence.NEW_FLEET)
    ]
    without = consequences(replace(after, overrides=()), after)
    assert [(each.setting, each.after) for each in without.effects] == [
        ("endpoint.model_overrides", "ml.g5.xlarge, ml.g5.2xlarge")
    ]


def test_the_review_and_the_bill_name_the_type(tmp_path: Path):
    after = make_plan("pool-of-two-engines", tmp_path)
    found = review(replace(after, overrides=()), after)
    assert found is not None
    assert "artifact of ml.g5.xlarge" in [each.name for each in found.changes]
    assert "artifact of ml.g5.xlarge in S3" in [each.name for each in bill_of(after).items]
