"""The reference pages are up to date, and have every field, command, variable and metric."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from containers.jobs.paths import JobPaths
from slipway.config.environments import Environment
from slipway.config.fields import find
from slipway.config.schema import ModelConfig
from tests.support.pages import ROOT, blocks
from tools.reference.commands import commands
from tools.reference.configs import pattern, values
from tools.reference.pages import DOCS, PAGES, written
from tools.reference.tables import split_description


@pytest.mark.parametrize("page", PAGES)
def test_the_page_in_docs_is_up_to_date(page):
    assert (DOCS / page).read_text("utf-8") == written(page), "run python -m tools.reference"


def leaves(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, info in model.model_fields.items():
        sections = find(model, (name,)).sections
        if not sections:
            yield ".".join((*path, name)), info
        for section in sections:
            yield from leaves(section, (*path, name))


def test_every_field_has_a_description_and_an_example():
    fields = [*leaves(ModelConfig), *leaves(Environment)]
    assert [name for name, info in fields if not info.description] == []
    # A name and a choice of two are shown by their description.
    assert [name for name, info in fields if not info.examples] == ["name", "artifacts"]


def test_durations_and_sizes_carry_their_unit():
    units = ("seconds", "milliseconds", "minutes", "days", "gb", "percent", "minute")
    for name, _ in leaves(ModelConfig):
        for word in ("timeout", "delay", "cooldown", "retention", "volume_size", "latency", "rate"):
            if word in name.rpartition(".")[2].split("_") or f"{word}_" in name:
                assert name.endswith(units), name


def test_what_is_too_long_for_a_cell_stands_below_the_table():
    text = f"{'Word ' * 19}end. It has `code`. A third sentence is too long for it."
    assert split_description(text) == (
        f"{'Word ' * 19}end. It has `code`.",
        "A third sentence is too long for it.",
    )


@pytest.mark.parametrize(
    ("section", "field", "said"),
    [
        ((), "name", "text of at most 40 characters"),
        (("alarms",), "model_latency_p99_milliseconds", "whole number above 0, at most 3,600,000"),
        (("endpoint",), "network_isolation", "`true` or `false`"),
        (("endpoint",), "instances", "list of 1 to 5 instance types"),
        (("endpoint",), "variants", "list of at most 10 sections"),
        (("rollout",), "strategy", "`all_at_once`, `canary`, `linear` or `rolling`"),
        (("autoscaling",), "min_instance_count", "whole number from 0 to 1000"),
        (("artifacts",), "weights", "section"),
        (("serving", "tensorrt"), "tensorrt_version", '`"10.4"` or `"10.13"`'),
    ],
)  # fmt: skip
def test_values_are_said_in_words(section, field, said):
    model = find(ModelConfig, section).sections[0] if section else ModelConfig
    assert values(model, field) == said


def test_a_list_has_the_pattern_of_its_texts():
    assert pattern(Environment, "notification_emails") == r"^[^@\s]+@[^@\s]+$"
    assert pattern(Environment, "artifacts") is None


def test_every_command_is_explained_with_an_example():
    page = (DOCS / "commands.md").read_text("utf-8")
    examples = "".join(
        block.text for block in blocks(DOCS / "commands.md") if block.language == "sh"
    )
    for words, command in commands().items():
        assert f"\n### slipway {words}\n" in page
        assert f"](#slipway-{words.replace(' ', '-')})" in page
        assert f"slipway {words}" in examples
        assert [each.name for each in command.params if not each.help] == [], words


def column(page: str, heading: str, number: int = 1) -> set[str]:
    """Returns the code in a column of the first table below a heading."""
    text = (DOCS / page).read_text("utf-8").partition(f"\n{heading}\n")[2]
    table = text[text.index("\n| ") :].partition("\n\n")[0].strip().splitlines()[2:]
    return {row.split("|")[number].strip().strip("`") for row in table}


def test_every_variable_that_the_programs_read_is_on_the_page():
    reads = re.compile(r"environ(?:ment)?(?:\.get\(|\[)\s*\"([A-Z][A-Z_]+)\"")
    found = {
        name
        for folder in ("slipway", "embedded_aws")
        for path in (ROOT / folder).rglob("*.py")
        for name in reads.findall(path.read_text("utf-8"))
    }
    # What a WSGI server hands to an application, and what the container's own process gets.
    found -= {"CONTENT_LENGTH", "CONTENT_TYPE", "PATH_INFO", "QUERY_STRING"}
    found -= {"REQUEST_METHOD", "REQUEST_URI"}
    found -= {"HOME", "PYTHONPATH", "SAGEMAKER_BIND_TO_PORT", "SM_MODEL_DIR"}
    found = {name for name in found if not name.startswith("HTTP_")}
    found |= {
        option.envvar
        for command in commands().values()
        for option in command.params
        if option.envvar
    }
    assert column("reference/variables.md", "## Commands on your machine") == found


def test_the_paths_of_compile_jobs_are_those_of_the_page():
    names = column("reference/variables.md", "## Compile jobs")
    read, _ = JobPaths.read({name: f"/{name}" for name in names})
    assert set(map(str, vars(read).values())) == {f"/{name}" for name in names}
    defaults = column("reference/variables.md", "## Compile jobs", 2)
    assert defaults == set(map(str, vars(JobPaths()).values()))


def test_the_metrics_of_autoscaling_are_those_of_the_templates():
    metric_names, predefined = set(), {"none"}
    for path in (ROOT / "tests" / "golden" / "templates").glob("*.json"):
        for resource in json.loads(path.read_bytes())["Resources"].values():
            policy = resource.get("Properties", {}).get("TargetTrackingScalingPolicyConfiguration")
            if not policy:
                continue
            if "PredefinedMetricSpecification" in policy:
                predefined.add(policy["PredefinedMetricSpecification"]["PredefinedMetricType"])
            else:
                metric_names.add(policy["CustomizedMetricSpecification"]["MetricName"])
    assert column("reference/metrics.md", "## CloudWatch: autoscaling", 2) == predefined
    assert metric_names < column("reference/metrics.md", "## CloudWatch: autoscaling")
