"""The reports of a run, made of a document; comparisons of two; and which runs are kept."""

import json
import re
from copy import deepcopy
from typing import Any
from xml.etree import ElementTree

import pytest

from slipway.benchmarking.compare import compare, differences_table, doubts
from slipway.benchmarking.kept import measurement_of
from slipway.benchmarking.report import as_html, as_markdown, plots, published_table
from slipway.benchmarking.results import FORMAT, SUMMARY, read_document
from slipway.errors import UserError
from slipway.project import Project
from slipway.sizing.measured import Measurement, image_name, settings_digest
from tests.support.projects import config_text, refusal, write_project


def measured(value: float, spread: float | None = None) -> dict[str, float | None]:
    low, high = (None, None) if spread is None else (value - spread, value + spread)
    return {"value": value, "low": low, "high": high, "deviation": spread}


def cell(rate: float, p99: float, usd: float | None = None, **levels: Any) -> dict[str, Any]:
    figures = {
        "requests_per_second": measured(rate, 1),
        "tokens_per_second": measured(rate * 10, 5),
        "p50_milliseconds": measured(p99 / 2),
        "p99_milliseconds": measured(p99),
        "failed_percent": measured(0),
    }
    if usd is not None:
        figures["usd_per_million_requests"] = measured(usd)
    return {
        "levels": levels,
        "trials": 5,
        "not_measured": None,
        "client_bound_trials": 0,
        "figures": figures,
        "failures": {},
        "instances": ["1 x ml.g4dn.xlarge"],
        "cost": "on demand, prices of 2026-11-01",
    }


def trials(rates: list[float], **levels: Any) -> list[dict[str, Any]]:
    return [
        {
            "levels": levels,
            "figures": {"requests_per_second": rate, "p99_milliseconds": 100 / rate},
            "instances": "1 x ml.g4dn.xlarge",
            "client_limit": None,
            "is_cut": False,
        }
        for rate in rates
    ]


@pytest.fixture
def document():
    cells = [
        cell(rate * batch, 20.0 * load * batch, 5 / rate, batch=batch, concurrency=load)
        for batch in (1, 4)
        for load, rate in ((1, 10.0), (2, 18.0), (4, 30.0))
    ]
    return {
        "format": FORMAT,
        "model": "ranker",
        "environment": "production",
        "region": "us-east-1",
        "endpoint": "ranker-production",
        "is_local": False,
        "design": "mine",
        "description": "A & B <test>",
        "trials": 5,
        "seed": 1,
        "is_open": False,
        "tokenizer": None,
        "began_at": "2026-11-28T10:00:00+00:00",
        "ended_at": "2026-11-28T10:10:00+00:00",
        "stopped": None,
        "client": {
            "slipway": "0.1.0", "python": "3.11", "system": "Linux", "cores": 2, "load_average": 0.1
        },
        "self_test": [
            {"concurrency": 1, "requests_per_second": None, "share": 1.0, "reason": None}
        ],
        "cells": cells,
        "measured": trials([10, 10.1, 10.2, 9.9, 10], batch=1, concurrency=1),
        "published": {
            "source": "https://example.com",
            "hardware": "V100",
            "note": "A note.",
            "rows": [
                {"server": "PyTorch", "batch": 1, "concurrency": 2, "requests_per_second": 3.1},
                {"server": "PyTorch", "batch": 4, "requests_per_second": 3.4},
                {"server": "PyTorch", "batch": 64, "p99_milliseconds": 9},
            ],
        },
    }  # fmt: skip


def test_the_markdown_has_results_beside_published_figures(document):
    text = as_markdown(document)
    assert "# ranker in production: mine" in text
    assert "| 1 | 2 | 18 (17 to 19) | 180 (175 to 185), SD 5 | 20 | 40 | 0 | 0.278 |" in text
    assert "Source: https://example.com. Hardware: V100. Here: 1 x ml.g4dn.xlarge. A note." in text
    table = published_table(document)
    assert table is not None
    heading, rows = table
    assert heading == [
        "server", "batch", "concurrency", "published requests/s", "here requests/s",
        "published p99, ms", "here p99, ms",
    ]  # fmt: skip
    assert rows == [
        ["PyTorch", "1", "2", "3.1", "18", "", ""],
        # The source does not say the concurrency: what was measured is a range.
        ["PyTorch", "4", "", "3.4", "40 to 120", "", ""],
        ["PyTorch", "64", "", "", "", "9", "not measured"],
    ]


def test_a_partial_run_and_a_level_without_a_result_are_told_first(document):
    document["stopped"] = "it was stopped by Ctrl-C"
    document["cells"][2] |= {"not_measured": "the client used 93% of a core", "figures": {}}
    document["cells"][1] |= {"instances": ["1 x ml.g4dn.xlarge", "2 x ml.g4dn.xlarge"]}
    document["cells"][0] |= {"failures": {"429 ThrottlingException": 1200}}
    text = as_markdown(document)
    told = text[: text.index("| batch")]
    assert "PARTIAL: it was stopped by Ctrl-C." in told
    assert "NO RESULT: batch 1, concurrency 4: the client used 93% of a core." in told
    assert "The instances changed during batch 1, concurrency 2" in told
    assert "| batch 1, concurrency 1 | 429 ThrottlingException | 1,200 |" in text
    assert "| 1 | 4 |" not in text
    assert text.count("PARTIAL") == as_html(document).count("PARTIAL") == 1


def test_the_page_loads_nothing_and_its_plots_are_well_formed(document):
    page = as_html(document)
    assert "A &amp; B &lt;test&gt;" in page
    assert not re.search(r"<script|<link|<img|src=|url\(|@import", page)
    assert "prefers-color-scheme: dark" in page
    drawn = list(plots(document))
    elements = [ElementTree.fromstring(plot) for plot in drawn]  # noqa: S314  # our own
    assert [each.findtext("title") or each.findtext("caption") for each in elements] == [
        "Latency against throughput, by concurrency: p50, ms against requests/s",
        "Latency against throughput, by concurrency: p99, ms against requests/s",
        "Cost against latency, by concurrency: USD per million requests against p99, ms",
        "tokens/s",
    ]
    # Light and dark: colours come from the page's variables alone.
    assert not any("#" in plot for plot in drawn)
    cells = [(cell.text, cell.get("style")) for cell in elements[3].iter("td") if cell.text]
    assert [text for text, _ in cells] == ["100", "400", "180", "720", "300", "1,200"]
    # The greatest number has the darkest shade.
    assert (cells[0][1], cells[-1][1]) == ("--shade: 6.0%", "--shade: 45.0%")
    for each in document["cells"]:
        del each["figures"]["usd_per_million_requests"]
        each["cost"] = "no published price of ml.x in us-east-1"
    page = as_html(document)
    assert "Cost: no published price of ml.x in us-east-1." in page
    assert "USD" not in page


def other(document: dict[str, Any], rates: list[float]) -> dict[str, Any]:
    changed = deepcopy(document)
    changed["measured"] = trials(rates, batch=1, concurrency=1)
    return changed


@pytest.mark.parametrize(
    ("rates", "change", "verdict"),
    [
        ([20, 20.2, 19.8, 20.1, 20], r"\+100\.0% \(\+9\d\.\d% to \+10\d\.\d%\)", "second"),
        ([5, 5.1, 4.9, 5, 5.05], r"-50\.0% \(-5\d\.\d% to -4\d\.\d%\)", "first"),
        ([10, 10.1, 10.2, 9.9, 10], r"\+0\.0% .*", None),
        ([20, 20, 20], r"\+100\.0%", "no verdict"),
    ],
)
def test_a_comparison_says_what_is_better_with_its_interval(document, rates, change, verdict):
    found = compare(document, other(document, rates))
    assert [each["figure"] for each in found] == ["requests_per_second", "p99_milliseconds"]
    rows = differences_table(found).rows
    assert re.fullmatch(change, rows[0][4])
    words = {"first": "first is better", "second": "second is better", None: "no difference shown"}
    expected = words.get(verdict, "no verdict: fewer than 5 trials")
    # A shorter latency is better, and more requests are.
    assert {row[5] for row in rows} == {expected}


def test_a_comparison_says_what_else_differs(document):
    changed = other(document, [10.0] * 5)
    changed |= {"seed": 2, "stopped": "it was stopped by Ctrl-C"}
    changed["measured"][0]["instances"] = "2 x ml.g4dn.xlarge"
    assert doubts(document, changed) == [
        "seed: 1 and 2",
        "instances: 1 x ml.g4dn.xlarge and 1 x ml.g4dn.xlarge, 2 x ml.g4dn.xlarge",
        "the second run is partial: it was stopped by Ctrl-C",
    ]
    changed["measured"] = trials([1.0], batch=1, concurrency=9)
    with pytest.raises(UserError, match="no cell with a result in common"):
        compare(document, changed)


def test_a_summary_that_cannot_be_used_is_told(tmp_path, document):
    with pytest.raises(UserError, match="absent cannot be read: No such file or directory"):
        read_document(tmp_path / "absent")
    (tmp_path / SUMMARY).write_text('{"format": 0}')
    with pytest.raises(UserError, match="is no summary of this version"):
        read_document(tmp_path)
    (tmp_path / SUMMARY).write_text(json.dumps(document))
    assert read_document(tmp_path)["model"] == "ranker"


def test_the_command_compares(tmp_path, document, slipway_command):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder, content in zip(folders, (document, other(document, [20.0] * 5)), strict=True):
        folder.mkdir()
        (folder / SUMMARY).write_text(json.dumps(content))
    names = list(map(str, folders))
    out = slipway_command.done("bench", "--compare", *names)
    assert "| batch 1, concurrency 1 | requests/s | 10 | 20 | +100.0% " in out
    found = slipway_command.document("bench", "--compare", *names)
    assert found["differences"][0]["verdict"] == "second is better"
    err = slipway_command.refused("bench", "ranker", "--compare", *names)
    assert "`--compare` measures nothing" in err
    assert "no model is named" in slipway_command.refused("bench")


def load_cell(clients: int, rate: float, failed: float = 0, **levels: Any) -> dict[str, Any]:
    return {
        "levels": {"batch": 1, **levels, "concurrency": clients},
        "figures": {
            "requests_per_second": measured(rate, 0.1),
            "tokens_per_second": measured(rate * 60),
            "average_milliseconds": measured(1000 * clients / rate),
            **{f"{e}_milliseconds": measured(50) for e in ("deviation", "p99")},
            "failed_percent": measured(failed),
        },
        "instances": ["2 x ml.g5.2xlarge"],
    }


KEPT: dict[str, Any] = {
    "format": FORMAT,
    "model": "tiny",
    "environment": "production",
    "is_local": False,
    "stopped": None,
    "design": "mine",
    "trials": 5,
    "began_at": "2026-11-28T10:00:00+00:00",
    "served": {
        "image": "slipway/tensorrt:0123",
        "artifact": "ab" * 32,
        "settings": "0123456789ab",
        "address": "https://runtime.sagemaker.eu-west-1.amazonaws.com",
    },
    "cells": [
        load_cell(2, 10, input_tokens=256, output_tokens=64),
        load_cell(8, 30),
        load_cell(64, 31, failed=9),
    ],
}


def test_loads_are_of_one_instance_and_failing_ones_are_left_out():
    found = measurement_of(KEPT, "lmi")
    first, second = found.loads
    assert (found.instance_type, found.instance_count) == ("ml.g5.2xlarge", 2)
    assert first.model_dump(exclude_none=True) == {
        "concurrency": 1, "batch": 1, "input_tokens": 256, "output_tokens": 60,
        "requests_per_second": 5, "least_requests_per_second": 4.95,
        "most_requests_per_second": 5.05, "average_milliseconds": 200,
        "deviation_milliseconds": 50, "p99_milliseconds": 50,
    }  # fmt: skip
    assert (second.concurrency, second.input_tokens) == (4, None)
    assert Measurement.model_validate_json(found.render()) == found


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"is_local": True}, "the embedded AWS runs on this machine, and says nothing about AWS"),
        ({"stopped": "Ctrl-C"}, "the run ended early: Ctrl-C"),
        ({"served": None}, "the run does not say which image and artifact answered"),
        (
            {"served": KEPT["served"] | {"address": "http://127.0.0.1:4566"}},
            "http://127.0.0.1:4566 is no address of AWS",
        ),
        (
            {"cells": [load_cell(1, 5), load_cell(1, 5) | {"instances": ["3 x ml.g5.2xlarge"]}]},
            "one number of instances of one type has to answer, and there were: "
            "2 x ml.g5.2xlarge; 3 x ml.g5.2xlarge",
        ),
        (
            {"cells": [load_cell(1, 5) | {"instances": ["1 x ml.g5.xlarge or ml.g5.2xlarge"]}]},
            "one number of instances of one type has to answer, and there were: "
            "1 x ml.g5.xlarge or ml.g5.2xlarge",
        ),
        (
            {"cells": [load_cell(1, 5, failed=2)]},
            "no load has a result with at most one failure in a hundred requests",
        ),
    ],
)
def test_a_run_that_says_nothing_about_aws_is_not_kept(changed, reason):
    [problem] = refusal(measurement_of, KEPT | changed, "lmi").problems
    assert (problem.code, problem.message) == ("SW800", f"the run is not kept: {reason}")


def test_a_run_is_kept_if_the_files_are_what_it_measured(tmp_path, monkeypatch, slipway_command):
    root = write_project(tmp_path, {"tiny": config_text("tiny")}, published=["tiny"])
    monkeypatch.chdir(root)
    project = Project(root)
    plan = project.plan("tiny", project.environment("production"))
    document = deepcopy(KEPT)
    document["served"] |= {
        "image": image_name(plan.image.uri),
        "artifact": plan.artifact.digest,
        "settings": settings_digest(plan.container_environment),
    }
    (root / SUMMARY).write_text(json.dumps(document))
    text = slipway_command.done("bench", "--keep", ".")
    assert text.endswith(
        "tiny.measured.json: measured on 2026-11-28 on ml.g5.2xlarge in production. Commit it "
        "beside the lock.\n"
    )
    kept = project.measurement("tiny")
    assert kept == measurement_of(document, "tensorrt")
    document["served"]["artifact"] = "cd" * 32
    (root / SUMMARY).write_text(json.dumps(document))
    errors = slipway_command.refused("bench", "--keep", ".")
    assert "the run is not kept: another artifact was measured (cdcd" in errors
    assert project.measurement("tiny") == kept
    assert "`--keep` measures nothing" in slipway_command.refused("bench", "tiny", "--keep", ".")
