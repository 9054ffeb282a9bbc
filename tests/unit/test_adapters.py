"""LoRA adapters: which base loads one, what an adapter's plan has, and what a reviewer sees."""

import json
import shutil
from pathlib import Path

import pytest

from slipway.cli.plan_text import describe_plan
from slipway.cli.review_text import as_text
from slipway.config.editor_schema import render
from slipway.operations.reviewing import review_change
from slipway.project import Project
from slipway.shared_endpoints import endpoint_name, models_sharing_endpoint, named_host
from tests.support.golden_cases import CASES
from tests.support.projects import PRODUCTION, lock_for, refusal, write_project

BASE = (CASES / "lora-base.yaml").read_text("utf-8")
ADAPTER = (CASES / "lora-adapter.yaml").read_text("utf-8")
MODELS = {"lora-base": BASE, "lora-adapter": ADAPTER}


def written(tmp_path: Path, **changed: str) -> Project:
    models = {**MODELS, **{name.replace("_", "-"): text for name, text in changed.items()}}
    return Project(write_project(tmp_path, models, published=["lora-base"]))


def refused(project: Project, name: str = "lora-adapter") -> str:
    return str(refusal(project.plan, name, PRODUCTION, allow_unpublished=True))


def lock(project: Project, rank: int = 16) -> None:
    locked = lock_for(project.config("lora-adapter", "production").config, sets=["release"])
    document = json.loads(locked.render())
    document["release"]["lora_rank"] = rank
    project.lock_path("lora-adapter").write_text(json.dumps(document))


def test_an_adapter_is_in_the_copies_of_its_base(tmp_path):
    project = written(tmp_path)
    lock(project)
    plan = project.plan("lora-adapter", PRODUCTION)
    assert plan.artifact.published
    assert plan.cost.instances.maximum == 0
    assert plan.log_group_name == "/aws/sagemaker/InferenceComponents/lora-base-production"
    assert describe_plan(plan).splitlines()[:2] == [
        "adapter                  of lora-base, whose copies load it: lora-base-production",
        "endpoint                 lora-base-production in 210987654321/eu-west-1",
    ]
    assert endpoint_name(project, "lora-adapter", PRODUCTION) == "lora-base-production"


def test_the_base_is_the_same_without_it(tmp_path):
    project = written(tmp_path)
    beside = project.plan("lora-base", PRODUCTION)
    assert models_sharing_endpoint(project, "lora-base", PRODUCTION) == ["lora-adapter"]
    assert models_sharing_endpoint(project, "lora-adapter", PRODUCTION) == ["lora-base"]
    project.files["lora-adapter"].unlink()
    alone = Project(project.root).plan("lora-base", PRODUCTION)
    assert beside == alone


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (("mode: scale_to_zero", "mode: realtime"), "`lora-base` is no base: an adapter needs a"),
        (("enable_lora: true", "enable_lora: false"), "the engine of `lora-base` loads no"),
        (("0.36.0", "0.33.0"), "the engine of `lora-base` loads no"),
        (("max_loras", "max_lorasx"), "the config of the base, `lora-base`, has problems"),
        (
            ("artifacts:\n", "artifacts:\n  isolated: true\n"),
            "the role of `lora-base` loads its adapters, and reads the files of `lora-base` alone",
        ),
    ],
)
def test_a_base_that_loads_no_adapter_is_refused(tmp_path, edit, told):
    assert edit[0] in BASE
    text = refused(written(tmp_path, lora_base=BASE.replace(*edit)))
    assert f"adapter_of: {told}" in text
    assert "[SW840]" in text


@pytest.mark.parametrize(
    ("base", "told"),
    [
        ("lora-adapter", "there is no other model `lora-adapter`"),
        ("lora-bose", "there is no other model `lora-bose`"),
        ("other", "`other` is an adapter itself, and loads none [SW840]\n    Name the base of"),
    ],
)
def test_a_wrong_name_of_the_base_is_refused(tmp_path, base, told):
    text = ADAPTER.replace("adapter_of: lora-base", f"adapter_of: {base}")
    other = ADAPTER.replace("name: lora-adapter", "name: other")
    project = written(tmp_path, lora_adapter=text, other=other)
    assert f"- model_configs/lora-adapter.yaml:5:1: adapter_of: {told}" in refused(project)
    assert named_host(project, "lora-adapter", PRODUCTION) == base


def test_the_locked_rank_is_compared_with_the_base(tmp_path):
    project = written(tmp_path)
    lock(project, rank=40)
    first, remedy = refused(project).splitlines()[1:]
    assert first.endswith("adapter has rank 40, and `lora-base` loads ranks up to 32 [SW843]")
    assert remedy.startswith(
        "    Set the option `max_lora_rank: 64` for `lora-base`, and deploy it."
    )


def test_more_adapters_than_a_batch_has_room_for(tmp_path):
    others = {f"a{n}": ADAPTER.replace("name: lora-adapter", f"name: a{n}") for n in range(4)}
    project = written(tmp_path, **others)
    plan = project.plan("a0", PRODUCTION, allow_unpublished=True)
    (message,) = [each.message for each in plan.warnings]
    assert message.startswith("lora-base has 5 adapters, and a batch has requests of 4 of them")
    project.files["a1"].unlink()
    assert not Project(tmp_path).plan("a0", PRODUCTION, allow_unpublished=True).warnings


def test_a_review_shows_the_adapter_and_not_its_base(tmp_path):
    before = written(tmp_path)
    lock(before)
    after = shutil.copytree(tmp_path, tmp_path / "after")
    added = ADAPTER.replace("name: lora-adapter", "name: brief")
    (after / "model_configs" / "brief.yaml").write_text(added)
    path = after / "model_configs" / "lora-adapter.lock.json"
    path.write_text(path.read_text().replace("ab" * 32, "bc" * 32))
    found = review_change(Project(after), before, "main", [], "production")
    assert [(each.model, each.verdict) for each in found.models] == [
        ("brief", "new"), ("lora-adapter", "in place"),
    ]  # fmt: skip
    assert found.models[0].reason == "an adapter in the copies of lora-base"
    assert "adapter.artifact" in as_text(found, {})
    # Other machines are a matter of the base alone.
    base = after / "model_configs" / "lora-base.yaml"
    base.write_text(BASE.replace("ml.g5.2xlarge", "ml.g5.4xlarge"))
    found = review_change(Project(after), before, "main", ["lora-*"], "production")
    assert [(each.model, each.verdict) for each in found.models] == [
        ("lora-adapter", "in place"), ("lora-base", "new fleet"),
    ]  # fmt: skip


def test_an_editor_wants_sections_of_a_model_alone():
    schema = json.loads(render())
    assert schema["required"] == ["name"]
    assert schema["if"] == {"not": {"required": ["adapter_of"]}}
    assert schema["then"]["required"] == ["name", "model", "serving", "endpoint", "alarms"]
