"""The table of LMI's partition frameworks: its form, and the guide's sections made of it."""

import itertools
import re
from pathlib import Path

import pytest

import slipway
from slipway.facts.lmi.frameworks import framework_versions, partition_frameworks
from slipway.facts.lmi.frameworks_table import sections, spans
from slipway.facts.lmi.options import table_of
from tests.unit.facts.lmi_images import VERSIONS

TABLE = table_of("lmi/lmi_frameworks.json")
GUIDE = Path(slipway.__file__).parents[1] / "docs" / "guides" / "lmi.md"
# Only Accelerate lays out whole layers; TensorRT-LLM alone has a way of running few models.
SPECIAL_CELLS = {"layers_over_devices", "without_rolling_batch", "successor"}


def rows():
    for name, framework in TABLE["frameworks"].items():
        for cell, found in framework.items():
            if isinstance(found, list):
                yield from ((name, cell, row) for row in found)


def covered(span):
    first, _, last = span.partition("..")
    end = VERSIONS.index(last) if last else len(VERSIONS) - 1
    return VERSIONS[VERSIONS.index(first) : end + 1]


# The form of the table


def test_every_row_has_a_source_and_a_span():
    for name, cell, row in rows():
        assert len(row["source"]) > 10, (name, cell)
        assert covered(row["in"]), (name, cell)
    for key in ("auto_rolling_batch", "rolling_batch_streams"):
        assert all(row["source"] and covered(row["in"]) for row in TABLE[key])


def test_values_are_of_a_fixed_set():
    for name, cell, row in rows():
        if cell == "layers_over_devices":
            assert row["value"] in ("degree", "device_map", "no")
        elif cell == "successor":
            assert row["value"] in TABLE["frameworks"]
        elif cell not in ("ahead_of_time", "without_rolling_batch"):
            assert row["value"] in ("yes", "no", "unknown"), (name, cell)


@pytest.mark.parametrize("name", partition_frameworks())
def test_every_version_has_one_row_in_every_cell(name):
    for cell, found in TABLE["frameworks"][name].items():
        if not isinstance(found, list):
            continue
        spans = list(itertools.chain(*(covered(row["in"]) for row in found)))
        assert len(spans) == len(set(spans)), cell
        if cell not in SPECIAL_CELLS:
            assert set(framework_versions(name)) <= set(spans), cell


# The guide


def test_the_sections_have_every_framework_and_version_once():
    titles = [TABLE["frameworks"][name]["title"] for name in partition_frameworks()]
    assert re.findall(r"^### (.*)$", sections(), re.MULTILINE) == titles
    for name in partition_frameworks():
        versions = [version for alike, _ in spans(name) for version in alike]
        assert versions == list(framework_versions(name))


def test_a_section_lists_what_holds_for_every_version_and_has_rows_for_the_rest():
    assert (
        "### lmi-dist\n\nLMI 0.23.0 to 0.32.0:\n\n"
        "- ahead of time: no\n"
        "- continuous batching: `lmi-dist`\n"
        "- server's batches: no\n"
        "- runs on: NVIDIA GPU\n"
        "- status: removed in 0.33.0: vLLM\n\n"
        "| LMI | image | over several accelerators | streams |\n"
        "| --- | --- | --- | --- |\n"
        "| 0.23.0 to 0.26.0 | djl-deepspeed | tensor parallel | `output_formatter` |\n"
    ) in sections()
    assert (
        "| 0.33.0 | tensor parallel, pipeline parallel unknown | `stream` | `trtllm` or without an "
        "option | no | living |"
    ) in sections().splitlines()


def test_the_guide_has_exactly_these_sections():
    _, _, after = GUIDE.read_text("utf-8").partition("## The frameworks, version by version\n")
    section, _, _ = after.partition("\n## ")
    begin = section.index("### ")
    assert section[begin:].startswith(f"{sections()}\n### Where the tables come from\n"), (
        "put what python -m slipway.facts.lmi.frameworks_table prints into docs/guides/lmi.md"
    )
