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
    return lambda *arguments: slipway("init", *arguments)


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
    code, _, errors = slipway("plan", "search")
    assert code == 1
    assert "Run `slipway publish search --env local`" in errors


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("starter", STARTERS, ids=lambda starter: "-".join(map(str, starter[:2])))
def test_every_family_gets_a_valid_and_explained_config(slipway, tmp_path, starter, weights):
    code, output, errors = slipway("init", "search", *starter_flags(starter, weights))
    assert (code, errors) == (0, "")
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
        code, report, _ = slipway("validate", "--env", environment)
        assert code == 0
        assert report.startswith(f"1 model config valid for `{environment}`.")
    # No plan warns of what it wrote, and what it says next is true.
    project = Project(tmp_path)
    plan = project.plan("search", project.environment("ci"), allow_unpublished=True)
    assert {warning.code for warning in plan.warnings} <= EXPECTED_WARNINGS
    code, _, errors = slipway("plan", "search", "--env", "ci")
    assert code == 1
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
    assert run("search", *starter_flags(starter, "s3://my-models/llama/"))[0] == 0
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


def test_the_version_runs_on_the_gpu(run, tmp_path):
    starter = ("lmi", "gptj", 6_053_381_344, "ml.p3.2xlarge", ())
    assert run("search", *starter_flags(starter, "s3://my-models/gptj/"))[0] == 0
    assert written(tmp_path)["serving"]["version"] == "0.35.0"


@pytest.mark.parametrize(
    ("family", "instance", "dtype"),
    [
        ("gptj", "ml.g4dn.2xlarge", "fp16"),
        ("gptj", "ml.g5.2xlarge", "bf16"),
        ("t5", "ml.g4dn.2xlarge", "fp32"),
        ("t5", "ml.g5.2xlarge", "bf16"),
    ],
)
def test_the_precision_follows_the_gpu(run, tmp_path, family, instance, dtype):
    starter = ("lmi", family, 222_903_552, instance, ("--framework", "djl-deepspeed"))
    run("search", *starter_flags(starter, "build/search"))
    assert written(tmp_path)["serving"]["dtype"] == dtype


@pytest.mark.parametrize(
    ("starter", "compile_instance", "serving"),
    [
        (STARTERS[0], "ml.g4dn.xlarge", {}),
        (STARTERS[6], "ml.g4dn.xlarge", {"version": "26.05"}),
        (STARTERS[8], "ml.c5.4xlarge", {"framework": "neuron", "batch_size": 6}),
        (STARTERS[9], "ml.c5.4xlarge", {"framework": "neuronx", "batch_size": 8}),
        (STARTERS[10], "ml.c5.4xlarge", {"framework": "neuronx", "batch_size": 8}),
    ],
)
def test_what_is_compiled_is_compiled_where_it_can_be(
    run, tmp_path, starter, compile_instance, serving
):
    assert run("search", *starter_flags(starter, "build/search"))[0] == 0
    content = written(tmp_path)
    assert content["artifacts"]["compile"] == {"instance": compile_instance}
    assert content["serving"].items() >= serving.items()


def test_a_model_repository_for_volta_has_its_last_release(run, tmp_path):
    assert run("search", *starter_flags(STARTERS[7], ""))[0] == 0
    serving = {"version": "24.09", "repository": "triton/search"}
    assert written(tmp_path)["serving"].items() >= serving.items()


def test_a_custom_image(run, tmp_path):
    code, output, _ = run("own", "--container", "custom", "--image-uri", IMAGE, *FLAGS)
    assert (code, output) == (
        0,
        "model_configs/own.yaml written.\nNext:\n  1. slipway plan own --allow-unpublished  "
        "# shows it; the embedded AWS does not run this image\n",
    )
    plan = Project(tmp_path).plan("own", LOCAL, allow_unpublished=True)
    assert plan.image.uri == IMAGE


def test_a_custom_image_and_a_real_environment_that_deploys_samples(run, tmp_path):
    (tmp_path / "environments.yaml").write_text(
        ENVIRONMENTS + "  artifacts: sample\n", encoding="utf-8"
    )
    _, output, _ = run("own", "--container", "custom", "--image-uri", IMAGE, *FLAGS)
    assert output == (
        f"model_configs/own.yaml written.\nNext:\n  1. {ACCOUNT}\n"
        "  2. slipway publish own --env NAME\n  3. cdk deploy own -c env=NAME\n"
    )


def test_a_sample_and_weights_together(run, tmp_path):
    code, output, _ = run("search", *FLAGS, "--weights", "build/search")
    assert code == 0
    assert "Next:\n  1. slipway publish search\n  2. cdk deploy search\n" in output
    assert set(written(tmp_path)["artifacts"]) == {"sample", "weights", "compile"}


def test_what_is_wrong_is_written_and_reported_with_its_line(run, tmp_path):
    code, _, errors = run("search", *FLAGS[:4], "--instance", "ml.c5.xlarge", *FLAGS[6:])
    assert code == 1
    assert errors.startswith("model_configs/search.yaml written; correct what is wrong in it:\n")
    assert "ml.c5.xlarge has no accelerator" in errors
    assert "model_configs/search.yaml:" in errors


def test_what_is_wrong_in_one_environment_alone_is_reported_once(run, tmp_path):
    # In `local`, which deploys samples, nothing is copied by the container and nothing compiled.
    weights = f"hub:openai-community/gpt2@{REVISION[:-1]}"
    code, _, errors = run("search", *FLAGS, "--weights", weights)
    assert code == 1
    assert errors.count("does not have the form ^[0-9a-f]{40}$") == 1


def test_weights_of_the_hub_need_their_commit(run, tmp_path):
    code, _, errors = run("search", *FLAGS, "--weights", "hub:openai-community/gpt2")
    assert code == 1
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
    code, output, _ = run("search", *options)
    assert code == 0
    assert f"model_configs/search.yaml written.\n{ON_THIS_MACHINE}" in output
    assert written(tmp_path)["model"] == {
        "family": "gpt2", "architecture": "GPT2LMHeadModel", "parameters": 2222560, "layers": 5,
        "hidden_size": 160, "attention_heads": 5, "positions": 128, "vocabulary_size": 4096,
        "tied_embeddings": True,
    }  # fmt: skip
    # An option wins, and the shape is of the checkpoint's family alone.
    code, _, _ = run("other", *options, "--family", "gptj", "--parameters", "7")
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
    code, _, errors = run(
        "search", "--weights", "mine", "--parameters", "108893186", "--instance", instance,
        "--latency-milliseconds", "900",
    )  # fmt: skip
    assert (code, errors) == (0, "")
    assert written(tmp_path)["serving"].items() >= serving.items()


def test_a_head_that_no_task_has_leaves_the_task_to_be_said(run, tmp_path):
    write_checkpoint(tmp_path, {"model_type": "bert", "architectures": ["BertForMaskedLM"]})
    code, _, errors = run(
        "search", "--weights", "mine", "--parameters", "1", *FLAGS[4:6], *FLAGS[8:]
    )
    assert (code, errors.splitlines()[-1]) == (1, "    Give --task.")


@pytest.mark.parametrize(
    ("task", "meant"),
    [
        ("text-classification", "sequence-classification"),
        ("ner", "token-classification"),
        ("feature-extraction", "embeddings"),
    ],
)
def test_a_task_by_the_name_of_transformers_is_understood(run, tmp_path, task, meant):
    code, _, errors = run("search", "--container", "neuron", *FLAGS, "--task", task)
    assert code == 1
    assert f"there is no task '{task}' [SW202]\n    Did you mean `{meant}`?" in errors
    assert not (tmp_path / "model_configs" / "search.yaml").exists()


def test_what_is_wrong_is_written_again_with_overwrite(run, tmp_path):
    assert run("search", *FLAGS[:4], "--instance", "ml.c5.xlarge", *FLAGS[6:])[0] == 1
    assert "or add `--overwrite`" in run("search", *FLAGS)[2]
    assert run("search", *FLAGS, "--overwrite")[0] == 0
    assert written(tmp_path)["endpoint"]["instances"] == ["ml.g4dn.xlarge"]


def test_a_checkpoint_that_is_not_there_says_where_it_is_looked_for(run, tmp_path):
    code, _, errors = run("search", "--weights", "mine", *FLAGS[4:6], *FLAGS[8:])
    assert code == 1
    assert errors == (
        "1 problem\n"
        "- `--weights mine` is not a directory of this project [SW601]\n"
        f"    Copy the checkpoint to {tmp_path / 'mine'}, or link it there and set "
        "SLIPWAY_ALLOW_OUTSIDE to its folder, or give --family and --parameters.\n"
    )
    assert not (tmp_path / "model_configs" / "search.yaml").exists()


def test_on_this_machine_is_not_said_where_local_deploys_releases(run, tmp_path):
    (tmp_path / "environments.yaml").write_text(
        ENVIRONMENTS.replace("artifacts: sample", "artifacts: release"), encoding="utf-8"
    )
    _, output, _ = run("search", *FLAGS[:6], "--weights", "build/search", *FLAGS[8:])
    assert output.endswith("Next:\n  1. slipway publish search\n  2. cdk deploy search\n")


def test_options_of_another_family_are_not_passed_over(run, tmp_path):
    code, _, errors = run("search", *FLAGS, "--framework", "djl-lmi", "--repository", "triton/a")
    assert code == 1
    assert errors == (
        "2 problems\n"
        "- `--framework` has no effect with the container `tensorrt` [SW409]\n"
        "    Leave it out, or use `--container lmi`.\n"
        "- `--repository` has no effect with the container `tensorrt` [SW409]\n"
        "    Leave it out, or use `--container triton`.\n"
    )
    code, _, errors = run("search", "--container", "lmi", *FLAGS, "--framework", "djl-deepspped")
    assert code == 1
    assert "there is no framework 'djl-deepspped' [SW202]\n    Did you mean" in errors
    assert "Did you mean `djl-deepspeed`?" in errors
    assert not (tmp_path / "model_configs" / "search.yaml").exists()


def test_nothing_is_overwritten_and_no_family_is_guessed(run):
    assert run("search", *FLAGS)[0] == 0
    code, _, errors = run("search", *FLAGS)
    assert code == 1
    assert "model_configs/search.yaml is there already" in errors
    code, _, errors = run("other", "--container", "tgi", *FLAGS)
    assert code == 1
    assert (
        "there is no container family 'tgi' [SW202]\n"
        "    Use tensorrt, lmi, triton, neuron, custom; `custom` is for an image of your own."
    ) in errors


@pytest.mark.parametrize("name", ["../outside", "Search", "foundation", "a" * 41])
def test_a_name_that_no_model_can_have_is_refused(run, tmp_path, name):
    code, _, errors = run(name, *FLAGS)
    assert code == 1
    assert (
        f"no model may be called {name!r} [SW206]\n    Use at most 40 characters of the form"
        in errors
    )
    assert [path.name for path in tmp_path.rglob("*.yaml")] == ["environments.yaml"]


def test_an_environment_of_an_account_is_proposed_before_that_of_ci(run, tmp_path):
    real = '  artifacts: sample\nlive:\n  account: "222233334444"\n  region: us-east-1\n'
    (tmp_path / "environments.yaml").write_text(
        f"{ENVIRONMENTS}{real}  artifacts: sample\n", "utf-8"
    )
    _, output, _ = run("own", "--container", "custom", "--image-uri", IMAGE, *FLAGS)
    assert output == (
        "model_configs/own.yaml written.\nNext:\n  1. slipway publish own --env live\n"
        "  2. cdk deploy own -c env=live\n"
    )
