"""The configs that are measured: made of templates, no two alike, all valid."""

import re

import pytest
import yaml

from benchmarks.config_language.configs import (
    Template,
    find_templates,
    variation,
    write_project,
)
from benchmarks.errors import BenchmarkError
from benchmarks.program import ROOT
from slipway.project import Project

TEMPLATE = Template(
    "tiny",
    "# tiny\nname: tiny\ndescription: A model\nalarms:\n  model_latency_p99_milliseconds: 600\n"
    "endpoint:\n  instance_count: 2\n  model_data_download_timeout_seconds: 3590\n",
    None,
)


def write(root, name: str, text: str, *, lock: str | None = None) -> None:
    folder = root / "model_configs"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.yaml").write_text(text)
    if lock is not None:
        (folder / f"{name}.lock.json").write_text(lock)


def test_templates_are_the_projects_configs_and_those_of_families_it_ships_none_of(tmp_path):
    write(tmp_path, "tiny", TEMPLATE.text, lock="{}")
    write(tmp_path, "other", "name: other\n")
    own = find_templates(tmp_path)
    assert [template.name for template in own] == ["other", "tiny", "custom"]
    assert own[1] == Template("tiny", TEMPLATE.text, "{}")
    assert own[0].lock is own[2].lock is None
    write(tmp_path, "custom", "name: custom\n")
    assert find_templates(tmp_path)[0].text == "name: custom\n"


def test_every_shipped_config_and_both_first_families_are_measured():
    templates = find_templates(ROOT)
    shipped = {path.stem for path in (ROOT / "model_configs").glob("*.yaml")}
    assert shipped < {template.name for template in templates}
    families = {yaml.safe_load(each.text)["serving"]["container"] for each in templates}
    assert families >= {"tensorrt", "custom"}


def test_a_template_whose_name_cannot_be_replaced_ends_the_benchmark(tmp_path):
    write(tmp_path, "tiny", "name: 'tiny'\n")
    with pytest.raises(BenchmarkError, match=r"^tiny\.yaml has no line `name: tiny` to vary$"):
        find_templates(tmp_path)


def test_a_variation_has_another_name_and_larger_numbers():
    base = yaml.safe_load(TEMPLATE.text)
    found = []
    for number in range(40):
        name, text = variation(TEMPLATE, number, seed=1)
        content = yaml.safe_load(text)
        assert name == content["name"] == f"tiny-{number:04}"
        assert content["description"] == f"A model (copy {number})"
        # Nothing else is touched: what is not in the table, and where the schema ends.
        assert content["endpoint"]["instance_count"] == base["endpoint"]["instance_count"]
        assert 3590 <= content["endpoint"]["model_data_download_timeout_seconds"] <= 3600
        found.append(content["alarms"]["model_latency_p99_milliseconds"])
    assert min(found) >= 600
    assert max(found) <= 1100
    assert len(set(found)) > 10


def test_the_seed_makes_the_configs():
    assert variation(TEMPLATE, 3, seed=1) == variation(TEMPLATE, 3, seed=1)
    assert variation(TEMPLATE, 3, seed=1) != variation(TEMPLATE, 3, seed=2)


def test_a_project_of_them_is_valid(tmp_path):
    # Whether each shipped config is right is the concern of the tests of the configs.
    templates = [
        each for each in find_templates(ROOT) if each.name in ("gpt2-autocomplete", "custom")
    ]
    first = write_project(tmp_path, templates, 7, seed=1)
    assert first == {"gpt2-autocomplete": "gpt2-autocomplete-0000", "custom": "custom-0001"}
    project = Project(tmp_path)
    assert len(project.files) == 7
    plans = [
        project.plan(name, project.environment(environment), allow_unpublished=True)
        for name in project.files
        for environment in ("local", "benchmark")
        if environment == "local" or name.startswith("custom")
    ]
    assert len(plans) == 7 + 3
    texts = {re.sub(r"-\d{4}|copy \d+", "", path.read_text()) for path in project.files.values()}
    assert len(texts) == 7
    locked = sorted(path.name for path in (tmp_path / "model_configs").glob("*.lock.json"))
    assert locked == [f"gpt2-autocomplete-{number:04}.lock.json" for number in (0, 2, 4, 6)]
