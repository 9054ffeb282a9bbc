"""`slipway init`: what it writes is valid and explained, and what it refuses is named."""

import json

import pytest

from slipway.config import starters
from slipway.config.editor_schema import FIRST_LINE
from slipway.config.starters.lmi import FRAMEWORKS
from slipway.facts.lmi.versions import lmi_version, usable_versions
from slipway.project import Project
from tests.support.pages import ROOT
from tests.support.projects import LOCAL
from tests.unit.cli.first_configs import ENVIRONMENTS, FLAGS, written

REVISION = "a09a35458c702b33eeacc393d103063234e8bc28"
IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/search:1.4.2"
ACCOUNT = "Add an environment `NAME` with your account to environments.yaml."
ON_THIS_MACHINE = (
    "On this machine:\n"
    '  1. pip install "slipway[export]==0.1.0"  '
    "# once, as compiling needs PyTorch; in a checkout `make export`\n"
    "  2. Set `artifacts: release` for `local` in environments.yaml.\n"
    "  3. slipway publish search\n"
    "  4. cdk deploy search\n"
)
WEIGHTS = {
    f"hub:openai-community/gpt2@{REVISION}": {
        "source": "hub", "repository": "openai-community/gpt2", "revision": REVISION,
    },
    "s3://my-models/search/": {"source": "s3", "uri": "s3://my-models/search/"},
    "build/search": {"source": "path", "path": "build/search"},
}  # fmt: skip
# Container, family, weights, instance, options of its own.
STARTERS = [
    ("tensorrt", "gpt2", 124_439_808, "ml.g4dn.xlarge", ()),
    ("lmi", "qwen2", 7_615_616_512, "ml.g5.2xlarge", ()),
    ("lmi", "t5", 11_135_332_352, "ml.g5.12xlarge", ("--framework", "djl-fastertransformer")),
    ("lmi", "gptj", 6_050_882_784, "ml.g4dn.2xlarge", ("--framework", "djl-deepspeed")),
    ("lmi", "llama", 6_738_415_616, "ml.inf2.8xlarge", ("--framework", "djl-neuronx")),
    ("lmi", "qwen2", 7_615_616_512, "ml.g6.2xlarge", ("--framework", "djl-tensorrtllm")),
    ("triton", "t5", 222_903_552, "ml.g4dn.xlarge", ()),
    ("triton", "gpt2", 124_439_808, "ml.p3.2xlarge", ("--repository", "triton/search")),
    ("neuron", "bert", 108_893_186, "ml.inf1.xlarge", ("--task", "question-answering")),
    ("neuron", "bert", 108_893_186, "ml.inf2.xlarge", ("--task", "embeddings")),
    ("neuron", "roberta", 124_645_632, "ml.trn1.2xlarge", ("--task", "embeddings")),
    ("custom", "bert", 108_893_186, "ml.g5.xlarge", ("--image-uri", IMAGE)),
]

# A first config runs one instance, and the newest image that its hardware and framework have.
EXPECTED_WARNINGS = {
    "unpublished",
    "single-instance",
    "legacy-image",
    "triton-advisories",
    "triton-nested-json",
    # The answer that these tests give for `image_uri` has a tag.
    "image-tag",
}


@pytest.fixture
def run(slipway):
    return slipway.of("init")


def write_checkpoint(tmp_path, config):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text(json.dumps(config), encoding="utf-8")


def starter_flags(starter, weights):
    container, family, parameters, instance, own = starter
    files = [] if "--repository" in own else ["--weights", weights]
    return [
        "--container", container, "--family", family, "--parameters", str(parameters),
        "--instance", instance, *files, "--latency-milliseconds", "900", *own,
    ]  # fmt: skip


def test_flags_make_a_valid_config(slipway, tmp_path):
    code, output, _ = slipway("init", "search", *FLAGS)
    assert (code, output) == (
        0,
        "model_configs/search.yaml written.\nNext:\n  1. slipway publish search\n"
        "  2. cdk deploy search\n",
    )
    plan = Project(tmp_path).plan("search", LOCAL, allow_unpublished=True)
    assert plan.variants[0].instance_type == "ml.g4dn.xlarge"
    # Nothing but the publication is between the file and a deployable plan.
    assert "Run `slipway publish search --env local`" in slipway.refused("plan", "search")


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("starter", STARTERS, ids=lambda starter: "-".join(map(str, starter[:2])))
def test_every_family_gets_a_valid_and_explained_config(slipway, tmp_path, starter, weights):
    output = slipway.done("init", "search", *starter_flags(starter, weights))
    content = written(tmp_path)
    if "--repository" in starter[4]:
        assert "artifacts" not in content
    else:
        assert content["artifacts"]["weights"] == WEIGHTS[weights]
    assert content["endpoint"]["instances"] == [starter[3]]
    lines = (tmp_path / "model_configs" / "search.yaml").read_text("utf-8").splitlines()
    assert lines[0] == FIRST_LINE
    assert max(map(len, lines)) <= 100
    # Every field has a comment above it.
    for number, line in enumerate(lines):
        if line and not line.lstrip().startswith("#"):
            assert lines[number - 1].lstrip().startswith("#"), line
    for environment in ("local", "ci"):
        report = slipway.done("validate", "--env", environment)
        assert report.startswith(f"1 model config valid for `{environment}`.")
    # No plan warns of what it wrote, and what it says next is true.
    project = Project(tmp_path)
    plan = project.plan("search", project.environment("ci"), allow_unpublished=True)
    assert {warning.code for warning in plan.warnings} <= EXPECTED_WARNINGS
    errors = slipway.refused("plan", "search", "--env", "ci")
    image = f"cdk deploy image-{starter[0]} -c env=NAME  # once\n"
    image *= starter[0] in ("neuron", "tensorrt", "triton") and "--repository" not in starter[4]
    begins = f"{ON_THIS_MACHINE}In an account" if image else "Next"
    steps = f"{ACCOUNT}\n{image}slipway publish search --env NAME\ncdk deploy search -c env=NAME"
    numbered = [f"  {number}. {step}\n" for number, step in enumerate(steps.splitlines(), 1)]
    assert output == f"model_configs/search.yaml written.\n{begins}:\n{''.join(numbered)}"
    assert "--env ci" not in errors
    assert "To publish, add an environment with your account to environments.yaml" in errors


def test_every_family_is_among_the_starters():
    assert {container for container, *_ in STARTERS} == set(starters.STARTERS)
    frameworks = {own[1] for *_, own in STARTERS if "--framework" in own}
    assert frameworks == set(FRAMEWORKS) - {"djl-lmi"}


def test_the_defaults_of_lmi(run, tmp_path):
    starter = ("lmi", "llama", 13_015_864_320, "ml.g5.12xlarge", ())
    run.done("search", *starter_flags(starter, "s3://my-models/llama/"))
    content = written(tmp_path)
    assert content["serving"] == {
        "container": "lmi",
        "framework": "djl-lmi",
        "version": usable_versions("djl-lmi")[-1],
        "tensor_parallel_degree": 4,
        "dtype": "bf16",
        "max_rolling_batch_size": 16,
        "max_input_tokens": 1024,
        "max_new_tokens": 256,
    }
    assert content["endpoint"]["network_isolation"] is False
    assert content["endpoint"]["container_startup_health_check_timeout_seconds"] == 1800
    assert "compile" not in content["artifacts"]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_version_whose_facts_are_anothers_is_not_taken(framework):
    assert lmi_version(framework, usable_versions(framework)[-1]).facts_of is None


DEEPSPEED = ("--framework", "djl-deepspeed")


@pytest.mark.parametrize(
    ("starter", "section", "expected"),
    [
        (("lmi", "gptj", 6_053_381_344, "ml.p3.2xlarge", ()), "serving", {"version": "0.35.0"}),
        (("lmi", "gptj", 1, "ml.g4dn.2xlarge", DEEPSPEED), "serving", {"dtype": "fp16"}),
        (("lmi", "gptj", 1, "ml.g5.2xlarge", DEEPSPEED), "serving", {"dtype": "bf16"}),
        (("lmi", "t5", 1, "ml.g4dn.2xlarge", DEEPSPEED), "serving", {"dtype": "fp32"}),
        (("lmi", "t5", 1, "ml.g5.2xlarge", DEEPSPEED), "serving", {"dtype": "bf16"}),
        (STARTERS[0], "artifacts", {"compile": {"instance": "ml.g4dn.xlarge"}}),
        (STARTERS[6], "artifacts", {"compile": {"instance": "ml.g4dn.xlarge"}}),
        (STARTERS[6], "serving", {"version": "26.05"}),
        (STARTERS[7], "serving", {"version": "24.09", "repository": "triton/search"}),
        (STARTERS[8], "artifacts", {"compile": {"instance": "ml.c5.4xlarge"}}),
        (STARTERS[8], "serving", {"framework": "neuron", "batch_size": 6}),
        (STARTERS[9], "artifacts", {"compile": {"instance": "ml.c5.4xlarge"}}),
        (STARTERS[9], "serving", {"framework": "neuronx", "batch_size": 8}),
        (STARTERS[10], "artifacts", {"compile": {"instance": "ml.c5.4xlarge"}}),
        (STARTERS[10], "serving", {"framework": "neuronx", "batch_size": 8}),
    ],
)
def test_what_follows_from_the_instance(run, tmp_path, starter, section, expected):
    run.done("search", *starter_flags(starter, "build/search"))
    assert written(tmp_path)[section].items() >= expected.items()


def test_a_custom_image(run, tmp_path):
    code, output, _ = run("own", "--container", "custom", "--image-uri", IMAGE, *FLAGS)
    assert (code, output) == (
        0,
        "model_configs/own.yaml written.\nNext:\n  1. slipway plan own --allow-unpublished  "
        "# shows it; the embedded AWS does not run this image\n",
    )
    plan = Project(tmp_path).plan("own", LOCAL, allow_unpublished=True)
    assert plan.image.uri == IMAGE


def test_a_sample_and_weights_together(run, tmp_path):
    output = run.done("search", *FLAGS, "--weights", "build/search")
    assert "Next:\n  1. slipway publish search\n  2. cdk deploy search\n" in output
    assert set(written(tmp_path)["artifacts"]) == {"sample", "weights", "compile"}


def test_what_is_wrong_is_written_and_reported_once_with_its_line(run, tmp_path):
    errors = run.refused("search", *FLAGS[:4], "--instance", "ml.c5.xlarge", *FLAGS[6:])
    assert errors.startswith("model_configs/search.yaml written; correct what is wrong in it:\n")
    assert "ml.c5.xlarge has no accelerator" in errors
    assert "model_configs/search.yaml:" in errors
    # In `local`, which deploys samples, nothing is copied by the container and nothing compiled.
    weights = f"hub:openai-community/gpt2@{REVISION[:-1]}"
    errors = run.refused("search", *FLAGS, "--weights", weights, "--overwrite")
    assert errors.count("does not have the form ^[0-9a-f]{40}$") == 1


def test_weights_of_the_hub_need_their_commit(run, tmp_path):
    errors = run.refused("search", *FLAGS, "--weights", "hub:openai-community/gpt2")
    assert errors == (
        "1 problem\n"
        "- `--weights hub:openai-community/gpt2` names no commit [SW411]\n"
        "    Write `hub:OWNER/NAME@REVISION` with all 40 digits of the commit: a branch could "
        "change under you.\n"
    )
    assert not (tmp_path / "model_configs" / "search.yaml").exists()


def test_a_local_checkpoint_says_its_family_parameters_and_shape(run, tmp_path):
    (tmp_path / "mine").symlink_to(ROOT / "samples" / "gpt2-autocomplete" / "model")
    options = ("--weights", "mine", "--instance", "ml.g4dn.xlarge", "--latency-milliseconds", "600")
    assert f"model_configs/search.yaml written.\n{ON_THIS_MACHINE}" in run.done("search", *options)
    assert written(tmp_path)["model"] == {
        "family": "gpt2", "architecture": "GPT2LMHeadModel", "parameters": 2222560, "layers": 5,
        "hidden_size": 160, "attention_heads": 5, "positions": 128, "vocabulary_size": 4096,
        "tied_embeddings": True,
    }  # fmt: skip
    # An option wins, and the shape is of the checkpoint's family alone.
    run("other", *options, "--family", "gptj", "--parameters", "7")
    assert written(tmp_path, "other")["model"] == {"family": "gptj", "parameters": 7}


@pytest.mark.parametrize(
    ("config", "serving"),
    [
        ({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}, {"container": "tensorrt"}),
        ({"model_type": "t5"}, {"container": "triton"}),
        ({"model_type": "llama"}, {"container": "lmi"}),
        (
            {"model_type": "bert", "architectures": ["BertForSequenceClassification"]},
            {"container": "neuron", "task": "sequence-classification"},
        ),
        (
            {"model_type": "xlm-roberta", "architectures": ["XLMRobertaModel"]},
            {"container": "neuron", "task": "embeddings"},
        ),
    ],
    ids=lambda value: value.get("model_type"),
)
def test_the_container_and_the_task_follow_from_the_checkpoint(run, tmp_path, config, serving):
    write_checkpoint(tmp_path, config)
    instance = "ml.inf2.xlarge" if serving["container"] == "neuron" else "ml.g5.xlarge"
    run.done(
        "search",
        "--weights",
        "mine",
        "--parameters",
        "108893186",
        "--instance",
        instance,
        "--latency-milliseconds",
        "900",
    )
    assert written(tmp_path)["serving"].items() >= serving.items()


def test_a_head_that_no_task_has_leaves_the_task_to_be_said(run, tmp_path):
    write_checkpoint(tmp_path, {"model_type": "bert", "architectures": ["BertForMaskedLM"]})
    errors = run.refused(
        "search", "--weights", "mine", "--parameters", "1", *FLAGS[4:6], *FLAGS[8:]
    )
    assert errors.splitlines()[-1] == "    Give --task."


@pytest.mark.parametrize(
    ("task", "meant"),
    [
        ("text-classification", "sequence-classification"),
        ("ner", "token-classification"),
        ("feature-extraction", "embeddings"),
    ],
)
def test_a_task_by_the_name_of_transformers_is_understood(run, tmp_path, task, meant):
    errors = run.refused("search", "--container", "neuron", *FLAGS, "--task", task)
    assert f"there is no task '{task}' [SW202]\n    Did you mean `{meant}`?" in errors
    assert not (tmp_path / "model_configs" / "search.yaml").exists()


def test_a_checkpoint_that_is_not_there_says_where_it_is_looked_for(run, tmp_path):
    errors = run.refused("search", "--weights", "mine", *FLAGS[4:6], *FLAGS[8:])
    assert errors == (
        "1 problem\n"
        "- `--weights mine` is not a directory of this project [SW601]\n"
        f"    Copy the checkpoint to {tmp_path / 'mine'}, or link it there and set "
        "SLIPWAY_ALLOW_OUTSIDE to its folder, or give --family and --parameters.\n"
    )
    assert not (tmp_path / "model_configs" / "search.yaml").exists()


def test_options_of_another_family_are_not_passed_over(run, tmp_path):
    errors = run.refused("search", *FLAGS, "--framework", "djl-lmi", "--repository", "triton/a")
    assert errors == (
        "2 problems\n"
        "- `--framework` has no effect with the container `tensorrt` [SW409]\n"
        "    Leave it out, or use `--container lmi`.\n"
        "- `--repository` has no effect with the container `tensorrt` [SW409]\n"
        "    Leave it out, or use `--container triton`.\n"
    )
    errors = run.refused("search", "--container", "lmi", *FLAGS, "--framework", "djl-deepspped")
    assert "there is no framework 'djl-deepspped' [SW202]\n    Did you mean" in errors
    assert "Did you mean `djl-deepspeed`?" in errors
    assert not (tmp_path / "model_configs" / "search.yaml").exists()


def test_nothing_is_overwritten_without_asking_and_no_family_is_guessed(run, tmp_path):
    assert run("search", *FLAGS[:4], "--instance", "ml.c5.xlarge", *FLAGS[6:])[0] == 1
    errors = run.refused("search", *FLAGS)
    assert "model_configs/search.yaml is there already" in errors
    assert "or add `--overwrite`" in errors
    run.done("search", *FLAGS, "--overwrite")
    assert written(tmp_path)["endpoint"]["instances"] == ["ml.g4dn.xlarge"]
    assert (
        "there is no container family 'tgi' [SW202]\n"
        "    Use tensorrt, lmi, triton, neuron, custom; `custom` is for an image of your own."
    ) in run.refused("other", "--container", "tgi", *FLAGS)


@pytest.mark.parametrize("name", ["../outside", "Search", "foundation", "a" * 41])
def test_a_name_that_no_model_can_have_is_refused(run, tmp_path, name):
    errors = run.refused(name, *FLAGS)
    assert (
        f"no model may be called {name!r} [SW206]\n    Use at most 40 characters of the form"
        in errors
    )
    assert [path.name for path in tmp_path.rglob("*.yaml")] == ["environments.yaml"]


LIVE = '  artifacts: sample\nlive:\n  account: "222233334444"\n  region: us-east-1\n'
CUSTOM = ("--container", "custom", "--image-uri", IMAGE, *FLAGS)


@pytest.mark.parametrize(
    ("environments", "options", "steps"),
    [
        (
            f"{ENVIRONMENTS}  artifacts: sample\n",
            CUSTOM,
            f"  1. {ACCOUNT}\n  2. slipway publish own --env NAME\n"
            "  3. cdk deploy own -c env=NAME\n",
        ),
        # An environment of an account is proposed before that of CI.
        (
            f"{ENVIRONMENTS}{LIVE}  artifacts: sample\n",
            CUSTOM,
            "  1. slipway publish own --env live\n  2. cdk deploy own -c env=live\n",
        ),
        # `On this machine` is not said where `local` deploys releases.
        (
            ENVIRONMENTS.replace("artifacts: sample", "artifacts: release"),
            (*FLAGS[:6], "--weights", "build/search", *FLAGS[8:]),
            "  1. slipway publish own\n  2. cdk deploy own\n",
        ),
    ],
)
def test_the_next_steps_are_those_of_the_environments(run, tmp_path, environments, options, steps):
    (tmp_path / "environments.yaml").write_text(environments, encoding="utf-8")
    assert run("own", *options)[1] == f"model_configs/own.yaml written.\nNext:\n{steps}"
