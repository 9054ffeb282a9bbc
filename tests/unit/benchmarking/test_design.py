"""Designs: the shipped ones, and what is wrong with others, each fault at its place."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from slipway.benchmarking.arrivals import constant_arrivals, read_trace
from slipway.benchmarking.design import (
    Cell,
    Design,
    Lengths,
    find_design,
    load_design,
    shipped_designs,
)
from slipway.benchmarking.requests import (
    REQUESTS,
    drawn_length,
    find_tokenizer,
    make_bodies,
    read_prompts,
    text_of,
)
from slipway.errors import UserError
from slipway.json_text import parse_json
from tests.support.projects import refusal
from tests.unit.benchmarking.stub_endpoint import written_design

ROOT = Path(__file__).parents[3]
CASES = {
    "gpt2-autocomplete": "gpt2-autocomplete",
    "flan-t5-xxl": "flan-t5-xxl",
    "gpt-j-6b": "gpt-j-6b",
    "t5-spelling": "t5-spelling",
    "bert-qa-throughput": "bert-qa",
    "bert-qa-latency": "bert-qa",
}


def problems(folder: Path, text: str) -> list[str]:
    path = folder / "mine.yaml"
    path.write_text(text)
    return [str(problem).split("\n")[0] for problem in refusal(load_design, path, folder).problems]


def test_each_published_case_has_a_design_and_an_unknown_one_names_those() -> None:
    for model, design in CASES.items():
        loaded = find_design(None, model, ROOT, ROOT)
        assert loaded.name == design
        assert loaded.design.published is not None
        assert loaded.design.trials >= 5
        assert loaded.cells()
    loaded = load_design(shipped_designs()["gpt-j-6b"], ROOT)
    assert len(loaded.cells()) == 2 * 4 * 4
    assert loaded.design.trials == 20
    with pytest.raises(UserError, match="there is no design 'gpt-j'") as caught:
        find_design("gpt-j", "ranker", ROOT, ROOT)
    assert "Did you mean `gpt-j-6b`?" in str(caught.value)
    with pytest.raises(UserError, match="no design ships for ranker"):
        find_design(None, "ranker", ROOT, ROOT)
    with pytest.raises(UserError, match=r"absent\.yaml: the file cannot be read"):
        find_design("absent.yaml", "ranker", ROOT, ROOT)


def test_every_fault_of_form_is_told_at_its_place(tmp_path: Path) -> None:
    text = """\
description: mine
factors:
  concurrency: [0]
  batches: [1]
trials: five
request:
  body: {inputs: "{inputs}"}
"""
    assert problems(tmp_path, text) == [
        "mine.yaml:3:17: factors.concurrency[0]: 0 is out of range: at least 1 [SW203]",
        "mine.yaml:4:3: factors.batches: unknown field [SW106]",
        'mine.yaml:5:1: trials: "five" is not a whole number [SW108]',
    ]


def test_every_contradiction_is_told_at_its_place(tmp_path: Path) -> None:
    text = """\
description: mine
factors:
  concurrency: [1, 1]
  requests_per_second: [5]
  batch: [2]
  output_tokens: [8]
  variant: [a]
  engine: {x: a}
  input_tokens: [4]
request:
  body: {inputs: "{input}"}
  input: {question: why}
prompts:
  lengths: {distribution: uniform, least: 9, most: 3, mean: 5}
"""
    assert problems(tmp_path, text) == [
        "mine.yaml:4:3: factors.requests_per_second: two loops are given [SW755]",
        "mine.yaml:8:3: factors.engine: both `variant` and `engine` choose a variant [SW755]",
        "mine.yaml:3:3: factors.concurrency: a level is there twice [SW755]",
        "mine.yaml:5:3: factors.batch: `{input}` in `request.body` is one input [SW755]",
        "mine.yaml:6:3: factors.output_tokens: `factors.output_tokens` and `{output_tokens}` in "
        "`request.body` belong together [SW755]",
        "mine.yaml:9:3: factors.input_tokens: two sources of texts are given [SW755]",
        "mine.yaml:12:3: request.input: has no text [SW755]",
        "mine.yaml:14:3: prompts.lengths: `mean` and `deviation` belong to a lognormal "
        "distribution, and only to it [SW755]",
        "mine.yaml:14:46: prompts.lengths.most: 3 is below `least`, 9 [SW755]",
    ]


def test_what_has_no_effect_is_refused(tmp_path: Path) -> None:
    text = """\
description: mine
factors: {concurrency: [1]}
arrivals: constant
connections: 8
request: {body: "{inputs}"}
prompts: {file: x.txt}
"""
    assert problems(tmp_path, text) == [
        "mine.yaml:3:1: arrivals: has no effect in a closed loop [SW755]",
        "mine.yaml:4:1: connections: has no effect in a closed loop [SW755]",
    ]
    open_loop = text.replace("concurrency: [1]", "requests_per_second: [1]") + "requests: 5\n"
    assert problems(tmp_path, open_loop) == [
        "mine.yaml:7:1: requests: has no effect in an open loop [SW755]"
    ]


def test_every_field_of_a_design_is_on_its_page() -> None:
    page = (ROOT / "docs/guides/bench.md").read_text("utf-8")

    def names(schema: dict[str, object]) -> set[str]:
        found = set()
        sections = [schema, *schema.get("$defs", {}).values()]  # type: ignore[attr-defined]
        for section in sections:
            found |= set(section["properties"])
        return found

    missing = {name for name in names(Design.model_json_schema()) if f"`{name}`" not in page}
    assert missing == set()


def test_texts_have_exactly_the_tokens_that_were_asked_for() -> None:
    loaded = load_design(shipped_designs()["gpt2-autocomplete"], ROOT)
    for model in ("gpt2-autocomplete", "t5-spelling", "bert-qa"):
        path = f"samples/{model}/model/tokenizer.json"
        prompts = loaded.design.prompts.model_copy(update={"tokenizer": path})
        design = loaded.design.model_copy(update={"prompts": prompts})
        named = replace(loaded, design=design)
        tokenizer, shown = find_tokenizer(named, None, "release")
        assert shown == path
        assert tokenizer is not None
        generator = random.Random(1)  # noqa: S311
        for count in (1, 9, 64):
            text = text_of(count, tokenizer, generator)
            found = tokenizer.encode(text, add_special_tokens=False)
            assert len(found.ids) == count


def test_a_request_is_the_form_with_its_texts(tmp_path: Path) -> None:
    body = {"inputs": "{inputs}", "parameters": {"max_new_tokens": "{output_tokens}"}}
    design = written_design(
        tmp_path,
        factors={"concurrency": [1], "batch": [3], "output_tokens": [7]},
        request={"body": body, "input": {"question": "why", "context": "{text}"}},
    )
    (cell,) = design.cells()
    bodies = make_bodies(design, cell, None, "")
    assert len(bodies) == REQUESTS
    assert parse_json(bodies[0]) == {
        "inputs": [{"question": "why", "context": text} for text in ("one", "two", "one")],
        "parameters": {"max_new_tokens": 7},
    }
    assert make_bodies(design, cell, None, "") == bodies


def test_a_tokenizer_that_is_missing_is_told(tmp_path: Path) -> None:
    design = written_design(tmp_path, factors={"concurrency": [1], "input_tokens": [5]}, prompts={})
    (cell,) = design.cells()
    assert str(refusal(make_bodies, design, cell, None, "there is no tokenizer.json")) == (
        "1 problem\n"
        "- lengths in tokens need the model's tokenizer: there is no tokenizer.json [SW755]\n"
        "    Name its tokenizer.json as `prompts.tokenizer`, or give texts as `prompts.file`."
    )
    (tmp_path / "tokenizer.json").write_text("{}")
    design = written_design(
        tmp_path,
        factors={"concurrency": [1], "input_tokens": [5]},
        prompts={"tokenizer": "tokenizer.json"},
    )
    with pytest.raises(UserError, match=r"tokenizer\.json is no tokenizer: "):
        find_tokenizer(design, None, "release")


def test_prompts_that_cannot_be_read_are_told_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"a": 1}\n{"a":\n\n[\n')
    assert [
        str(problem.location) for problem in refusal(read_prompts, path, tmp_path).problems
    ] == ["prompts.jsonl:2:1", "prompts.jsonl:4:1"]
    path.write_text("\n")
    with pytest.raises(UserError, match=r"prompts\.jsonl has no prompt"):
        read_prompts(path, tmp_path)
    with pytest.raises(UserError, match=r"absent\.txt cannot be read: No such file"):
        read_prompts(tmp_path / "absent.txt", tmp_path)


def test_lengths_and_gaps_follow_what_is_asked_for(tmp_path: Path) -> None:
    generator = random.Random(1)  # noqa: S311
    uniform = Lengths(distribution="uniform", least=4, most=6, mean=None, deviation=None)
    assert {drawn_length(uniform, generator) for _ in range(100)} == {4, 5, 6}
    skewed = Lengths(distribution="lognormal", least=1, most=1000, mean=100, deviation=50)
    drawn = [drawn_length(skewed, generator) for _ in range(4000)]
    assert abs(sum(drawn) / len(drawn) - 100) < 4  # five standard errors
    assert sorted(drawn)[2000] < 95  # the median is below the mean
    path = tmp_path / "trace.csv"
    path.write_text("10\n10.5\n3600\n")
    assert read_trace(path, tmp_path) == [0, 0.5, 3590]
    assert constant_arrivals(4, 1) == [0, 0.25, 0.5, 0.75]
    assert Cell(batch=2, concurrency=4).levels() == {"batch": 2, "concurrency": 4}


def test_a_trace_with_faults_is_told_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    # Other faults are those of every trace: see tests/unit/sizing/test_traffic.py.
    path.write_text("second\n1\n-2\n5\n\n10,3\n")
    assert [
        str(problem).split("\n")[0] for problem in refusal(read_trace, path, tmp_path).problems
    ] == [
        "trace.csv:3:1: the time -2 is negative [SW755]",
        "trace.csv:6:1: the line has 2 columns, and not 1 [SW755]",
    ]
    path.write_text("second\n")
    with pytest.raises(UserError, match=r"trace\.csv: the file has no request"):
        read_trace(path, tmp_path)
