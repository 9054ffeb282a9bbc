"""LMI packages: what DJL Serving gets is what the plan shows, in every environment."""

from pathlib import Path

import pytest
import yaml

from slipway import java_properties
from slipway.config.schema import ModelConfig
from slipway.errors import UserError
from slipway.planning.artifact_place import own_place, shared_place
from slipway.project import Project
from slipway.publishing.families.lmi.package import (
    PROPERTIES_FILE,
    lmi_package,
    require_plain_weights,
    script_files,
)
from slipway.publishing.manifest import Snapshot
from tests.publishing.progress import Progress
from tests.publishing.progress import run as publish
from tests.publishing.promotions import ENVIRONMENTS, STAGING, contents
from tests.support.deployments import lmi
from tests.support.projects import PRODUCTION, messages, write_files, write_project

CONFIG = """\
name: flan
description: T5 with a handler of one's own
model:
  family: t5
  parameters: 77000000
  layers: 8
  hidden_size: 512
  attention_heads: 6
  head_size: 64
serving:
  container: lmi
  framework: djl-fastertransformer
  version: 0.23.0
  script: handlers/flan
  dtype: fp32
  max_input_tokens: 512
  max_new_tokens: 128
  options:
    max_new_tokens: 128
artifacts:
  weights:
    source: path
    path: weights/flan
  size_gb: 0.3
endpoint:
  instances: [ml.g5.2xlarge]
  model_data_download_timeout_seconds: 600
  container_startup_health_check_timeout_seconds: 1800
  network_isolation: false
alarms:
  model_latency_p99_milliseconds: 2000
"""
HANDLER = {
    "model.py": "def handle(inputs): ...\n",
    "helpers/words.py": "WORDS = ()\n",
    "__pycache__/model.cpython-311.pyc": "machine's",
    ".model.py.swp": "an editor's",
}
WEIGHTS = {"config.json": "{}", "pytorch_model.bin": "w" * 1000, "tokenizer.json": "{}"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_files(tmp_path / "handlers" / "flan", HANDLER)
    write_files(tmp_path / "weights" / "flan", WEIGHTS)
    return write_project(tmp_path, {"flan": CONFIG}, environments=ENVIRONMENTS)


def config_of(text: str = CONFIG) -> ModelConfig:
    return ModelConfig.model_validate(yaml.safe_load(text))


def run(root: Path, access, environment):
    progress = Progress()
    return publish(root, access, environment, progress, name="flan"), progress


def test_a_package_has_the_script_and_no_caches(root):
    config = config_of()
    package = lmi_package(lmi(config, PRODUCTION), script_files(config.serving, root), "cd" * 32)
    assert sorted(package.files) == ["helpers/words.py", "model.py", PROPERTIES_FILE]
    assert package.source == "handlers/flan"
    assert java_properties.parse(package.files[PROPERTIES_FILE])["option.model_id"] == (
        f"s3://{{artifact_bucket}}/artifacts/{'cd' * 32}/files/"
    )
    for place, root_of_place in (
        (shared_place(STAGING), ""),
        (own_place("flan", STAGING), "models/flan/"),
    ):
        rendered = package.rendered(place)
        assert java_properties.parse(rendered[PROPERTIES_FILE])["option.model_id"] == (
            f"s3://{STAGING.artifact_bucket}/{root_of_place}artifacts/{'cd' * 32}/files/"
        )
    assert rendered["model.py"] == package.files["model.py"]


@pytest.mark.parametrize(
    ("replaced", "entry_point"),
    [("", None), ("  image: built\n", "slipway_fastertransformer")],
)
def test_without_a_script_the_settings_are_the_package(root, replaced, entry_point):
    config = config_of(CONFIG.replace("  script: handlers/flan\n", replaced))
    package = lmi_package(lmi(config, PRODUCTION), script_files(config.serving, root), "cd" * 32)
    assert (list(package.files), package.source) == ([PROPERTIES_FILE], "the config")
    found = java_properties.parse(package.files[PROPERTIES_FILE])
    assert found.get("option.entryPoint") == entry_point


def test_what_is_published_is_what_the_plan_shows(root, account):
    result, _ = run(root, account, STAGING)
    plan = Project(root).plan("flan", STAGING)
    found = contents(account, STAGING)
    prefix = f"artifacts/{result.digest}/"
    assert plan.artifact.digest == result.digest
    assert java_properties.parse(found[f"{prefix}files/{PROPERTIES_FILE}"]) == (
        plan.serving_properties
    )
    weights = Snapshot.of(root / "weights" / "flan", "weights/flan").manifest
    assert plan.serving_properties["option.model_id"] == (
        f"s3://{STAGING.artifact_bucket}/artifacts/{weights.digest}/files/"
    )
    assert set(found) == {
        *(f"{prefix}files/{name}" for name in ("helpers/words.py", "model.py", PROPERTIES_FILE)),
        f"{prefix}manifest.json",
        *(f"artifacts/{weights.digest}/files/{name}" for name in WEIGHTS),
        f"artifacts/{weights.digest}/manifest.json",
    }
    assert (result.weights_digest, result.target) == (weights.digest, "any")
    sizes = [len(body) for key, body in found.items() if "/files/" in key]
    assert result.uploaded_bytes == sum(sizes)
    again, progress = run(root, account, STAGING)
    assert (again.uploaded_bytes, again.lock_changed) == (0, False)
    assert ({*progress.uploads[0]}, progress.notes) == ({0}, [])


def test_the_same_settings_have_one_digest_everywhere(root, account):
    staging, _ = run(root, account, STAGING)
    production, _ = run(root, account, PRODUCTION)
    assert production.digest == staging.digest
    key = f"artifacts/{staging.digest}/files/{PROPERTIES_FILE}"
    for environment in (STAGING, PRODUCTION):
        assert environment.artifact_bucket.encode() in contents(account, environment)[key]
    lock = Project(root).lock("flan")
    assert lock.environments is not None
    assert lock.environments["staging"] == lock.environments["production"]
    assert lock.release is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    max_new_tokens: 128\nart", "    max_new_tokens: 64\nart"),
        ("check_timeout_seconds: 1800", "check_timeout_seconds: 1900"),
    ],
)
def test_a_changed_setting_moves_bytes_and_not_weights(root, account, old, new):
    first, _ = run(root, account, STAGING)
    (root / "model_configs" / "flan.yaml").write_text(CONFIG.replace(old, new))
    with pytest.raises(UserError, match="the config changed after the release was published"):
        Project(root).plan("flan", STAGING)
    second, progress = run(root, account, STAGING)
    assert second.digest != first.digest
    assert second.weights_digest == first.weights_digest
    assert progress.uploads[0][0] == 0
    assert second.uploaded_bytes < 1000


def test_an_environment_has_settings_of_its_own(root, account):
    overrides = "environments:\n  staging:\n    serving:\n      predict_timeout_seconds: 30\n"
    (root / "model_configs" / "flan.yaml").write_text(CONFIG + overrides)
    staging, _ = run(root, account, STAGING)
    production, _ = run(root, account, PRODUCTION)
    assert production.digest != staging.digest
    assert production.weights_digest == staging.weights_digest
    # Publishing to one has not made the other's lock stale.
    assert Project(root).plan("flan", STAGING).artifact.digest == staging.digest
    assert Project(root).plan("flan", PRODUCTION).artifact.digest == production.digest


def test_a_script_that_cannot_be_sent_is_found_before_the_weights_move(root, account):
    (root / "handlers" / "flan" / "model.py").unlink()
    with pytest.raises(UserError) as caught:
        run(root, account, STAGING)
    assert messages(caught.value) == [
        "handlers/flan has no model.py, which is what DJL Serving starts"
    ]
    assert caught.value.problems[0].location is not None
    assert contents(account, STAGING) == {}


def test_everything_that_is_wrong_with_a_script_at_once(root):
    directory = root / "handlers" / "flan"
    (directory / PROPERTIES_FILE).write_text("engine=MPI\n")
    (directory / "link.py").symlink_to(directory / "model.py")
    with pytest.raises(UserError) as caught:
        script_files(config_of().serving, root)
    assert messages(caught.value) == [
        "handlers/flan has a serving.properties of its own",
        "handlers/flan/link.py is a symbolic link",
    ]


def test_requirements_of_a_built_in_handler_are_in_the_package(root, account):
    text = CONFIG.replace("script: handlers/flan", "requirements: lists")
    text = text.replace("  options:\n    max_new_tokens: 128\n", "")
    (root / "model_configs" / "flan.yaml").write_text(text)
    with pytest.raises(UserError) as caught:
        run(root, account, STAGING)
    assert messages(caught.value) == [
        "lists has no requirements.txt, which is what DJL Serving installs"
    ]
    write_files(root / "lists", {"requirements.txt": "tiktoken\n"})
    published, _ = run(root, account, STAGING)
    files = contents(account, STAGING)
    prefix = f"artifacts/{published.digest}/files/"
    assert files[f"{prefix}requirements.txt"] == b"tiktoken\n"
    assert {key.removeprefix(prefix) for key in files if key.startswith(prefix)} == {
        "requirements.txt", PROPERTIES_FILE,
    }  # fmt: skip
    write_files(root / "lists", {"model.py": ""})
    with pytest.raises(UserError) as caught:
        script_files(config_of(text).serving, root)
    assert messages(caught.value) == ["lists has a model.py, which DJL Serving would start"]


TOLD_BY_VARIABLES = (
    CONFIG.replace("framework: djl-fastertransformer", "framework: djl-lmi")
    .replace("version: 0.23.0", "version: 0.36.0")
    .replace("  script: handlers/flan\n", "  configuration: environment\n")
    .replace("  options:\n    max_new_tokens: 128\n", "  rolling_batch: disable\n")
    .replace("dtype: fp32", "entry_point: djl_python.huggingface\n  dtype: fp32")
)


class TestVariables:
    @pytest.fixture
    def told(self, root: Path) -> Path:
        (root / "model_configs" / "flan.yaml").write_text(TOLD_BY_VARIABLES)
        return root

    def test_the_weights_are_all_that_is_published(self, told, account):
        result, _ = run(told, account, STAGING)
        weights = Snapshot.of(told / "weights" / "flan", "weights/flan").manifest
        assert (result.digest, result.weights_digest) == (weights.digest, None)
        assert set(contents(account, STAGING)) == {
            *(f"artifacts/{weights.digest}/files/{name}" for name in WEIGHTS),
            f"artifacts/{weights.digest}/manifest.json",
        }
        plan = Project(told).plan("flan", STAGING)
        assert plan.artifact.s3_uri == (
            f"s3://{STAGING.artifact_bucket}/artifacts/{weights.digest}/files/"
        )
        assert plan.container_environment["OPTION_DTYPE"] == "fp32"

    def test_one_lock_is_for_every_environment(self, told, account):
        run(told, account, STAGING)
        result, _ = run(told, account, PRODUCTION)
        assert not result.lock_changed
        lock = Project(told).lock("flan")
        assert lock.environments is None
        assert lock.release is not None
        assert lock.release.code is None
        bucket = PRODUCTION.artifact_bucket
        plan = Project(told).plan("flan", PRODUCTION)
        assert plan.artifact.s3_uri.startswith(f"s3://{bucket}/")

    def test_a_changed_setting_needs_no_publish(self, told, account):
        run(told, account, STAGING)
        changed = TOLD_BY_VARIABLES.replace("dtype: fp32", "dtype: bf16")
        (told / "model_configs" / "flan.yaml").write_text(changed)
        plan = Project(told).plan("flan", STAGING)
        assert plan.container_environment["OPTION_DTYPE"] == "bf16"

    def test_the_other_way_to_say_it_sends_no_weights_again(self, told, account):
        first, _ = run(told, account, STAGING)
        packaged = TOLD_BY_VARIABLES.replace("configuration: environment", "configuration: file")
        (told / "model_configs" / "flan.yaml").write_text(packaged)
        with pytest.raises(UserError, match="the release was never published"):
            Project(told).plan("flan", STAGING)
        second, _ = run(told, account, STAGING)
        assert second.weights_digest == first.digest
        assert second.uploaded_bytes < 1000
        assert Project(told).plan("flan", STAGING).weights is not None

    @pytest.mark.parametrize("name", ["model.py", "serving.properties", "requirements.txt"])
    def test_what_the_server_would_follow_is_refused(self, told, account, name: str):
        (told / "weights" / "flan" / name).write_text("x")
        with pytest.raises(UserError) as caught:
            run(told, account, STAGING)
        (problem,) = caught.value.problems
        assert problem.message == (
            f"the weights have {name}, which DJL Serving would follow: with `configuration: "
            "environment` their directory is the model's"
        )
        assert problem.remedy == (
            "Leave them out of the weights, or use `configuration: file`, which keeps settings and "
            "weights apart."
        )
        assert problem.location is not None
        assert Project(told).lock("flan").release is None

    def test_what_it_leaves_alone_passes(self):
        require_plain_weights(
            ["config.json", "modeling_qwen.py", "model.safetensors", "code/model.py", "a.pkl"]
        )
        with pytest.raises(UserError, match=r"have MAR-INF/MANIFEST\.json, model, model\.pkl,"):
            require_plain_weights(["model.pkl", "model", "MAR-INF/MANIFEST.json", "config.json"])

    def test_folders_alone_are_refused_as_each_would_be_a_model(self):
        with pytest.raises(UserError) as caught:
            require_plain_weights([".gitattributes", "a/config.json", "b/config.json", "c.tar.gz"])
        assert str(caught.value) == (
            "1 problem\n- artifacts.weights: the weights have no file beside their folders and "
            "archives, each of which DJL Serving would take for a model: with `configuration: "
            "environment` their directory is the model's [SW605]\n"
            "    Choose the folder with config.json as the weights, or use `configuration: file`."
        )
