"""The configs that ship: each valid, each synthesised for `ci`, as the CDK CLI would."""

import collections
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from slipway.config.editor_schema import FIRST_LINE
from slipway.operations.upgrading import check_upgrade
from slipway.operations.versions import Version, installed
from slipway.planning.plan import DeploymentPlan
from slipway.planning.resources import resources_of
from slipway.planning.review import ModelReview
from slipway.project import Project
from tests.support.linting import lint
from tests.synth.assemblies import ROOT, Assembly, Process, run_app, synthesised
from tests.synth.security import reports_of

PROJECT = Project(ROOT)
SHIPPED = tuple(PROJECT.files)
LIVING = {
    "bert-qa-inf2": "huggingface-pytorch-inference-neuronx",
    "bert-qa-latency": "huggingface-pytorch-inference-neuronx",
    "bert-qa-throughput": "huggingface-pytorch-inference-neuronx",
    "flan-t5-xxl": "djl-lmi",
    "flan-ul2": "djl-lmi",
    "gpt-j-6b": "djl-lmi",
}
# What an app needs of a checkout.
CHECKOUT = ("app.py", "environments.yaml", "model_configs", "containers")


def plan(name: str, environment: str = "ci") -> DeploymentPlan:
    return PROJECT.plan(name, PROJECT.environment(environment), allow_unpublished=True)


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    directory = tmp_path_factory.mktemp("cdk.out")
    return synthesised(PROJECT, directory, validates=True, environment="ci", allow_unpublished=True)


def test_every_family_ships():
    containers = {PROJECT.config(name, "ci").config.serving.container for name in SHIPPED}
    assert containers == {"tensorrt", "lmi", "triton", "neuron"}


@pytest.mark.parametrize("name", SHIPPED)
def test_an_editor_knows_its_schema(name: str):
    assert PROJECT.files[name].read_text("utf-8").startswith(f"{FIRST_LINE}\nname: {name}\n")


@pytest.mark.parametrize("name", SHIPPED)
def test_it_is_valid_everywhere(name: str):
    for environment in PROJECT.environment_names:
        assert plan(name, environment).environment.name == environment


def test_cfn_lint_and_the_cdks_own_validation_find_nothing(shipped: Assembly):
    """Also in the foundation, and in the stacks of images."""
    stacks = shipped.stacks()
    assert {"foundation", "image-tensorrt", "image-triton", "image-neuron", *SHIPPED} <= {*stacks}
    found = lint(shipped.template_file(name) for name in stacks)
    assert [str(match) for matches in found.values() for match in matches] == []
    for name in SHIPPED:
        assert "Metadata" not in shipped.template(name), "a suppression would stand there"
    # app.py leaves the second out, because it would double the time of every synth.
    assert reports_of(shipped.directory) == {}, "what was found or suppressed"


@pytest.mark.parametrize("name", SHIPPED)
def test_the_plan_names_the_resources_of_the_template(shipped: Assembly, name: str):
    assert shipped.annotations(name, "error") == []
    found = collections.Counter(
        resource["Type"] for resource in shipped.template(name)["Resources"].values()
    )
    assert resources_of(plan(name)) == found


@pytest.mark.parametrize("name", SHIPPED)
def test_a_legacy_image_says_what_to_use_instead(shipped: Assembly, name: str):
    legacy = [text for text in shipped.annotations(name, "warning") if "legacy image" in text]
    if name not in LIVING:
        assert legacy == []
    else:
        # Our Neuron container has no setting for its base: there an image of one's own does it.
        own = name.startswith("bert-qa")
        where = "With `container: custom` on inf2 or trn1 there is" if own else ""
        assert f"{where or 'The living alternative is'} {LIVING[name]} " in legacy[0]


def test_the_published_cases_are_as_published():
    gpt2 = plan("gpt2-autocomplete")
    # Requests of ten texts, four at a time: there one after the other, here in one batch.
    assert gpt2.container_environment["SLIPWAY_MAX_BATCH_SIZE"] == "40"
    assert gpt2.container_environment["SLIPWAY_MAX_NEW_TOKENS"] == "42"
    flan = plan("flan-t5-xxl")
    assert flan.variants[0].instance_types == ("ml.g5.12xlarge",)
    assert flan.serving_properties["engine"] == "FasterTransformer"
    assert flan.serving_properties["option.entryPoint"] == "djl_python.fastertransformer"
    assert flan.serving_properties["option.tensor_parallel_degree"] == "4"
    assert flan.serving_properties["option.dtype"] == "fp32"
    gptj = plan("gpt-j-6b")
    assert gptj.serving_properties["engine"] == "DeepSpeed"
    assert gptj.serving_properties["option.dtype"] == "fp16"
    throughput, latency = plan("bert-qa-throughput").neuron, plan("bert-qa-latency").neuron
    assert throughput is not None
    assert latency is not None
    assert (throughput.pipeline_cores, throughput.workers, throughput.batch_size) == (1, 4, 6)
    assert (latency.pipeline_cores, latency.workers, latency.batch_size) == (16, 1, 1)


def test_no_code_and_a_script_of_ones_own():
    assert "option.entryPoint" not in plan("flan-ul2").serving_properties
    script = PROJECT.config("flan-ul2", "ci").config.serving.model_dump()["script"]
    assert (ROOT / script / "model.py").is_file()


def test_two_weighted_variants_share_the_requests():
    assert [variant.weight for variant in plan("qwen2-7b-two-gpus").variants] == [9, 1]


def synthesise(checkout: Path, seed: str, language: str) -> Process:
    for name in CHECKOUT:
        source = ROOT / name
        ignored = shutil.ignore_patterns("__pycache__")
        if source.is_dir():
            shutil.copytree(source, checkout / name, ignore=ignored)
        else:
            checkout.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, checkout)
    variables = {"PYTHONHASHSEED": seed, "LC_ALL": language, "TZ": f"UTC{seed}"}
    context = {"env": "ci", "allow-unpublished": "true"}
    return run_app(checkout, checkout / "cdk.out", variables, **context)


@pytest.mark.size("all")
def test_two_checkouts_give_the_same_bytes(tmp_path: Path, shipped: Assembly):
    checkouts = [tmp_path / "one", tmp_path / "an other" / "place"]
    processes = [
        synthesise(checkout, seed, language)
        for checkout, seed, language in zip(checkouts, "19", ("C", "C.UTF-8"), strict=True)
    ]
    for process in processes:
        with process:
            _, errors = process.communicate()
        assert process.returncode == 0, errors
    outputs = [checkout / "cdk.out" for checkout in checkouts]
    names, others = (
        sorted(str(path.relative_to(output)) for path in output.rglob("*") if path.is_file())
        for output in outputs
    )
    assert names == others
    for name in names:
        assert (outputs[0] / name).read_bytes() == (outputs[1] / name).read_bytes(), name
    for name in ("foundation", *SHIPPED):
        file = f"{name}.template.json"
        assert (outputs[0] / file).read_bytes() == (shipped.directory / file).read_bytes(), file


# `slipway upgrade --check` from a version that was a clone, with its code beside the configs

# The last commit before everything became part of the package `slipway`, and of much else.
BEFORE = "bfdef1c5"
AWS_IMAGES = ("flan-t5-xxl", "flan-ul2", "gpt-j-6b", "qwen2-7b-trtllm", "qwen2-7b-vllm")
OWN_IMAGES = ("bert-qa-inf2", "bert-qa-latency", "gpt2-autocomplete", "t5-spelling")


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModelReview]:
    clone = tmp_path_factory.mktemp("clone")
    archive = subprocess.run(["git", "-C", ROOT, "archive", BEFORE], capture_output=True)
    assert archive.returncode == 0, f"run `git fetch --unshallow`: there is no commit {BEFORE}"
    subprocess.run(["tar", "-x", "-C", clone], input=archive.stdout, check=True)
    # Both versions run with the tests' packages: an installation would need an index.
    before = Version("before", Path(sys.executable), clone)
    review = check_upgrade(PROJECT, before, installed(), ["ci"])
    assert review.problems == ()
    return {each.model: each for each in review.models}


@pytest.mark.size("deep")
def test_images_of_slipway_bring_new_fleets_and_images_of_aws_do_not(
    upgraded: dict[str, ModelReview],
) -> None:
    for name in OWN_IMAGES:
        assert upgraded[name].verdict == "new fleet"
        effects = upgraded[name].consequences.effects  # type: ignore[union-attr]
        assert effects[0].setting == "AWS::SageMaker::Model is made anew"
        assert "/slipway/" in (effects[0].after or "")
        assert "start beside the old fleet" in upgraded[name].reason
    for name in (*AWS_IMAGES, "foundation", "image-tensorrt", "image-neuron", "image-triton"):
        assert upgraded[name].verdict == "in place"


@pytest.mark.size("deep")
def test_what_is_new_beside_the_fleets_is_named(upgraded: dict[str, ModelReview]) -> None:
    review = upgraded["qwen2-7b-vllm"]
    settings = [each.setting for each in review.consequences.effects]  # type: ignore[union-attr]
    assert "AWS::CloudWatch::Dashboard is added" in settings
    assert [(each.is_wider, each.text.partition(" on ")[0]) for each in review.reach] == [
        (True, "sagemaker:ListTags"),
        (False, "sts:AssumeRole"),
    ]


@pytest.mark.size("deep")
def test_configs_with_newer_fields_are_unknown_to_it(upgraded: dict[str, ModelReview]) -> None:
    assert upgraded["qwen3-8b"].verdict == "unknown"
    assert "model_configs/qwen3-8b.yaml:6:3: model.family" in upgraded["qwen3-8b"].reason
