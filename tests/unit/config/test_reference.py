"""The reference page is the schema's."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

import slipway
from slipway.config.environments import Environment
from slipway.config.fields import find
from slipway.config.reference import render
from slipway.config.schema import ModelConfig

ROOT = Path(slipway.__file__).parents[1]


def leaves(model: type[BaseModel], path: tuple[str, ...] = ()):
    for name, info in model.model_fields.items():
        sections = find(model, (name,)).sections
        if not sections:
            yield ".".join((*path, name)), info
        for section in sections:
            yield from leaves(section, (*path, name))


def test_the_page_in_docs_is_up_to_date():
    assert (ROOT / "docs" / "reference.md").read_text("utf-8") == render(), (
        "run python -m slipway.config.reference > docs/reference.md"
    )


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
