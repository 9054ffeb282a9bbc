"""The reference pages of the two YAML files have every field, in short sentences."""

from pathlib import Path

import pytest
from pydantic import BaseModel

import slipway
from slipway.config.environments import Environment
from slipway.config.fields import find
from slipway.config.schema import ModelConfig
from tools.reference.config_values import pattern, values
from tools.reference.configs import LONGEST_MEANING_WORDS, pages, split_description

ROOT = Path(slipway.__file__).parents[1]


def leaves(model: type[BaseModel], path: tuple[str, ...] = ()):
    for name, info in model.model_fields.items():
        sections = find(model, (name,)).sections
        if not sections:
            yield ".".join((*path, name)), info
        for section in sections:
            yield from leaves(section, (*path, name))


def test_what_is_too_long_for_a_cell_stands_below_the_table():
    page = pages()["reference/environments.md"]
    row = next(line for line in page.splitlines() if line.startswith("| `log_key`"))
    assert row.endswith(
        "`artifact` for the key of the artifact bucket, or the ARN of another key. |"
    )
    assert "- `log_key`: CloudWatch Logs needs permission to use the key" in page


def test_a_sentence_in_a_cell_is_short():
    fields = [*leaves(ModelConfig), *leaves(Environment)]
    meanings = [split_description(info.description or "") for _, info in fields]
    assert sum(bool(rest) for _, rest in meanings) > 5
    long = [cell for cell, _ in meanings if len(cell.split()) > LONGEST_MEANING_WORDS]
    assert long == []


@pytest.mark.parametrize(
    ("section", "field", "said"),
    [
        ("", "name", "text of at most 40 characters"),
        ("alarms", "model_latency_p99_milliseconds", "whole number above 0, at most 3,600,000"),
        ("endpoint", "network_isolation", "`true` or `false`"),
        ("endpoint", "instances", "list of 1 to 5 instance types"),
        ("endpoint", "variants", "list of at most 10 sections"),
        ("rollout", "strategy", "`all_at_once`, `canary`, `linear` or `rolling`"),
        ("autoscaling", "min_instance_count", "whole number from 0 to 1000"),
        ("artifacts", "weights", "section"),
    ],
)  # fmt: skip
def test_values_are_said_in_words(section, field, said):
    model = find(ModelConfig, (section,)).sections[0] if section else ModelConfig
    assert values(model, field) == said


def test_a_number_that_has_to_be_quoted_is_shown_with_quotes():
    tensorrt = find(ModelConfig, ("serving", "tensorrt")).sections[0]
    assert values(tensorrt, "tensorrt_version") == '`"10.4"` or `"10.13"`'


def test_a_list_has_the_pattern_of_its_texts():
    assert pattern(Environment, "notification_emails") == r"^[^@\s]+@[^@\s]+$"
    assert pattern(Environment, "account") == "^[0-9]{12}$"
    assert pattern(Environment, "artifacts") is None


def test_every_field_has_a_description_and_an_example():
    fields = [*leaves(ModelConfig), *leaves(Environment)]
    assert len(fields) > 30
    assert [name for name, info in fields if not info.description] == []
    # A name and a choice of two are shown by their description.
    assert [name for name, info in fields if not info.examples] == ["name", "artifacts"]


def test_durations_and_sizes_carry_their_unit():
    units = ("seconds", "milliseconds", "minutes", "days", "gb", "percent", "minute")
    for name, _ in leaves(ModelConfig):
        for word in ("timeout", "delay", "cooldown", "retention", "volume_size", "latency", "rate"):
            if word in name.rpartition(".")[2].split("_") or f"{word}_" in name:
                assert name.endswith(units), name
