"""Of an invalid config the valid part: every rule finds the same in it, or nothing."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slipway.config.load import InvalidConfigError, load_config
from slipway.config.schema import ModelConfig
from slipway.config.sections.base import UnknownValueError
from slipway.config.valid_subset import Doubts, valid_subset
from slipway.errors import FieldPath, Problem, UserError
from slipway.planning.families import deployment_of, known_deployment
from slipway.planning.resolve import known_problems
from tests.support.mutants import golden_cases
from tests.support.projects import LOCAL, PRODUCTION, config_text

NO_DOUBTS = Doubts(frozenset(), frozenset())
CASES = Path(__file__).parents[2] / "golden" / "cases"


def known(content: dict[str, Any], doubts: Doubts = NO_DOUBTS) -> ModelConfig:
    return valid_subset(ModelConfig, content, doubts)


def content_of(*changes: tuple[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(config_text("tiny", *changes))
    return found


def is_unknown(section: Any, *fields: str) -> bool:
    """Whether a look at each of the fields fails."""
    for field in fields:
        with pytest.raises(UnknownValueError):
            getattr(section, field)
    return True


def test_a_wrong_missing_or_misspelt_field_has_no_value_and_no_default():
    content = content_of(("parameters: 124439808", "layers: []"))
    content["endpoint"]["log_retention_days"] = 2
    found = known(content)
    assert found.model.family == "gpt2"
    assert found.model.attention_heads is None
    assert found.endpoint.instance_count == 2
    assert is_unknown(found.model, "parameters", "layers")
    assert is_unknown(found.endpoint, "log_retention_days")
    with pytest.raises(AttributeError):
        _ = found.model.nothing
    content = content_of()
    content["serving"]["max_queue_lenght"] = 4
    content["instance_provision_timeout_seconds"] = 300
    doubts = Doubts(frozenset(), frozenset({"instance_provision_timeout_seconds"}))
    found = known(content, doubts)
    assert is_unknown(found.serving, "max_queue_length")
    assert is_unknown(found.endpoint, "instance_provision_timeout_seconds")
    assert found.serving.max_batch_size == 8


def test_lists_and_mappings_keep_what_is_right_or_are_unknown():
    content = content_of()
    content["endpoint"] |= {
        "instances": ["ml.g4dn.xlarge", "ml.x"],
        "variants": [{"name": "one", "weight": "heavy"}, {"name": "two", "weight": 1.0}],
    }
    content["tags"] = {"team": "search", "cost": 5}
    found = known(content)
    assert is_unknown(found.endpoint, "instances")
    one, two = found.endpoint.variants
    assert (one.name, two.name, two.weight) == ("one", "two", 1.0)
    assert is_unknown(one, "weight")
    assert list(found.tags.items()) == [("team", "search")]
    assert "team" in found.tags
    for asked in (lambda: found.tags["cost"], lambda: found.tags.get("cost"),
                  lambda: "cost" in found.tags):  # fmt: skip
        with pytest.raises(UnknownValueError):
            asked()
    content["endpoint"]["variants"] = [1]
    content["tags"] = {"Team": "a", "team": "b"}
    assert is_unknown(known(content).endpoint, "variants")
    assert is_unknown(known(content), "tags")


def test_a_list_in_place_of_a_section_is_unknown_and_a_section_in_place_of_a_list():
    for written in ([], [{"container": "tensorrt"}]):
        assert is_unknown(known({"serving": written}), "serving")
    content = content_of()
    for section in ({}, {"name": "one", "weight": 1.0}):
        content["endpoint"]["variants"] = section
        assert is_unknown(known(content).endpoint, "variants")


@pytest.mark.parametrize("container", [["lmi"], None, "lmy"])
def test_an_unknown_container_leaves_the_rules_that_do_not_ask_for_it(container):
    content = content_of()
    content["serving"]["container"] = container
    content["endpoint"] |= {"instances": ["ml.g4dn.xlarge", "ml.g4dn.xlarge"]}
    found = known_problems(known_deployment(known(content), PRODUCTION))
    assert [problem.message for problem in found] == ["ml.g4dn.xlarge is named twice"]


def paths_in(value: Any, path: FieldPath = ()) -> Iterator[FieldPath]:
    """Yields the path of every value, sections and lists too."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from paths_in(item, (*path, key))


BASES: list[tuple[str, dict[str, Any], frozenset[Problem]]] = []


def bases(root: Path) -> list[tuple[str, dict[str, Any], frozenset[Problem]]]:
    """Returns name, content and problems of each golden case whose values are valid."""
    if not BASES:
        texts = {base.name: base.raw.decode() for base in golden_cases()}
        texts |= {path.stem[6:]: path.read_text("utf-8") for path in CASES.glob("error_*.yaml")}
        for name, text in sorted(texts.items()):
            path = root / "model_configs" / f"{name}.yaml"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
            try:
                config = load_config(path, root, "production", ("local", "production")).config
            except UserError:
                continue
            found = known_problems(deployment_of(config, PRODUCTION))
            BASES.append((name, yaml.safe_load(text), frozenset(found)))
    return BASES


@settings(
    max_examples=150,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_no_problem_follows_from_a_value_that_is_not_known(tmp_path, data):
    name, content, problems = data.draw(st.sampled_from(bases(tmp_path)))
    content = copy.deepcopy(content)
    content.pop("environments", None)
    path = data.draw(st.sampled_from(sorted(paths_in(content), key=repr)))
    section = content
    for part in path[:-1]:
        section = section[part]
    section[path[-1]] = [[None]]
    file = tmp_path / "model_configs" / f"{name}.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(yaml.safe_dump(content), "utf-8")
    with pytest.raises(InvalidConfigError) as caught:
        load_config(file, tmp_path, "production", ("local", "production"))
    found = known_problems(known_deployment(caught.value.known, PRODUCTION))
    assert frozenset(found) <= problems


def test_a_valid_config_is_known_whole_but_for_doubtful_fields():
    config = ModelConfig.model_validate(content_of())
    assert known(content_of()) == config
    assert known(content_of()).model_fields_set == config.model_fields_set
    assert known_problems(deployment_of(config, LOCAL)) == []
    doubts = Doubts(frozenset({("endpoint", "instance_count"), ("tags", "a")}), frozenset())
    content = content_of() | {"tags": {"a": "1", "b": "2"}}
    found = known(content, doubts)
    assert dict(found.tags.items()) == {"b": "2"}
    assert is_unknown(found.endpoint, "instance_count")
