"""`make verify-neuron` on instances of stand-ins for AWS's compilers and devices, over PyTorch."""

import json
import math
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tokenizers import Encoding, Tokenizer

from tests.containers.neuron.compile.jobs import STANDINS, VERSIONS, write_versions
from tools.verification.runner import Order
from tools.verify_neuron import comparison, steps
from tools.verify_neuron.__main__ import main
from tools.verify_neuron.comparison import CONTEXT_WORDS, QUESTION_WORDS, WORDS, make_bodies
from tools.verify_neuron.device import Layout, layouts_of

ROOT = Path(__file__).parents[2]
STEPS = ["model", "compile", "answers", "throughput"]


@pytest.fixture
def root(tmp_path):
    """Where the machine's file system begins."""
    made = tmp_path / "root"
    made.mkdir()
    return made


def has_device(root: Path, instance_type: str) -> None:
    for folder in ("dev", "sys/devices/virtual/dmi/id", "sys/module/neuron"):
        (root / folder).mkdir(parents=True)
    (root / "dev/neuron0").touch()
    (root / "sys/devices/virtual/dmi/id/product_name").write_text(f"{instance_type}\n")
    (root / "sys/module/neuron/version").write_text("2.24.7.0\n")


@pytest.fixture(autouse=True)
def workers(tmp_path, monkeypatch):
    """Gives the workers this interpreter; returns where a test puts their packages."""
    site = tmp_path / "site"
    site.mkdir()
    path = os.pathsep.join(map(str, (STANDINS, site, ROOT)))
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setenv("SLIPWAY_WORKER_PYTHON", sys.executable)
    return site


def test_a_machine_without_a_device_gets_a_list_of_all_that_it_lacks(root, monkeypatch, capsys):
    monkeypatch.setenv("SLIPWAY_WORKER_PYTHON", "/opt/neuron/bin/python")
    assert main([], root=root) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "This machine cannot run `make verify-neuron` yet:"
    assert [line.split(":")[0] for line in lines[1:]] == [
        "- there is no /dev/neuron0",
        "- inf1 needs torch, torch-neuron, neuron-cc, tensorflow in the workers' "
        "/opt/neuron/bin/python",
        "- inf1 needs safetensors, transformers in the workers' /opt/neuron/bin/python",
        "- inf2 needs torch, torch-neuronx, neuronx-cc in the workers' /opt/neuron/bin/python",
        "- inf2 needs safetensors, transformers in the workers' /opt/neuron/bin/python",
    ]


def test_an_instance_of_another_kind_is_named(root, capsys):
    has_device(root, "trn2.48xlarge")
    assert main([], root=root) == 1
    assert (
        "- the machine calls itself trn2.48xlarge: use an instance of inf1, inf2, trn1\n"
        in capsys.readouterr().err
    )


@pytest.mark.torch
@pytest.mark.size("all")
@pytest.mark.timeout(900)
def test_each_step_succeeds_on_instances(root, tmp_path, workers, monkeypatch):
    monkeypatch.setenv("NEURON_STANDIN_DIRECTORY", str(tmp_path / "devices"))
    monkeypatch.setenv("NEURON_STANDIN_RECORD", str(tmp_path / "record"))
    result_path = tmp_path / "result.json"
    for instance_type, cores, layouts, chosen in (
        ("inf1.xlarge", 4, ["pipeline", "batch-6"], STEPS),
        # With the same model. The loads of another family are the same step with other numbers.
        ("inf2.xlarge", 2, ["batch-8", "batch-1"], ["compile", "answers"]),
    ):
        family = instance_type.partition(".")[0]
        for folder in (root, workers, tmp_path / "devices"):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        has_device(root, instance_type)
        write_versions(workers, VERSIONS[family])
        monkeypatch.setenv("NEURON_STANDIN_CORES", str(cores))
        status = main(
            ["--quick", "--seconds", "0.2", "--trials", "1", "--folder", str(tmp_path / "files"),
             "--output", str(result_path), *chosen],
            root=root,
        )  # fmt: skip
        result = json.loads(result_path.read_text("utf-8"))
        details = [(each["name"], each["detail"]) for each in result["steps"]]
        assert details == [(name, "") for name in chosen]
        assert status == 0
        assert result["device"]["instance type"] == instance_type
        assert result["device"]["NeuronCores"] == cores
        assert result["device"]["driver"] == "2.24.7.0"
        found = {each["name"]: each["rows"] for each in result["steps"]}
        assert [row[0] for row in found["compile"]] == layouts
        assert [row[:3] for row in found["answers"]] == [[name, 24, 0] for name in layouts]
        if "throughput" in chosen:
            assert {row[0] for row in found["throughput"]} == set(layouts)
            assert all(row[4] > 0 for row in found["throughput"])


@pytest.mark.parametrize(
    ("family", "cores", "expected"),
    [
        ("inf1", 4, [("pipeline", 4, 1, ((1, 12), (1, 1))), ("batch-6", 1, 4, ((1, 24), (6, 4)))]),
        ("inf2", 2, [("batch-8", 1, 2, ((1, 16), (8, 2))), ("batch-1", 1, 2, ((1, 2),))]),
        ("trn1", 2, [("batch-8", 1, 2, ((1, 16), (8, 2))), ("batch-1", 1, 2, ((1, 2),))]),
    ],
)
def test_the_layouts_of_a_family_have_the_loads_of_the_benchmark(family, cores, expected):
    found = [
        (each.name, each.cores, each.workers, each.loads) for each in layouts_of(family, cores)
    ]
    assert found == expected


def logits_of(tokens: int, seed: int) -> list[list[float]]:
    """Starts and ends, with another order of spans for each seed."""
    found: list[list[float]] = np.random.default_rng(seed).normal(size=(2, tokens)).tolist()
    return found


def answer_of(encoding: Encoding, logits: list[list[float]]) -> str:
    """Returns the ten best spans as the container answers them, from every span."""
    context = [token for token, part in enumerate(encoding.sequence_ids) if part == 1]
    starts, ends = (softmax(np.array(each), [0, *context]) for each in logits)
    spans = [
        {"start": encoding.offsets[start][0], "end": encoding.offsets[end][1],
         "score": starts[start] * ends[end]}
        for start in context for end in context if start <= end < start + 15
    ]  # fmt: skip
    return json.dumps(sorted(spans, key=lambda span: -span["score"])[:10])


def softmax(logits: Any, tokens: list[int]) -> Any:
    return np.exp(logits) / np.exp(logits[tokens]).sum()


def test_answers_of_other_weights_are_told_from_rounding(root, tmp_path, monkeypatch):
    has_device(root, "inf2.xlarge")
    (tmp_path / "checkpoint").mkdir()
    comparison.write_tokenizer(tmp_path / "checkpoint" / "tokenizer.json")
    order = Order(tmp_path, seed=1, seconds=0.1, trials=1, is_quick=True, root=root)

    def refer(_checkpoint: Path, file: Path) -> None:
        rows = json.loads(file.read_text("utf-8"))
        file.write_text(json.dumps([logits_of(len(ids), seed=1) for ids, _ in rows]), "utf-8")

    @contextmanager
    def loaded(order: Order, layout: Layout, _step: str) -> Iterator[Any]:
        tokenizer = Tokenizer.from_file(str(order.folder / "checkpoint" / "tokenizer.json"))
        # The graph of one layout is of other weights, but for its first answer.
        others = 2 if layout.name == "batch-1" else 1
        answers = []
        for number, each in enumerate(comparison.make_questions(order.seed)):
            encoding = tokenizer.encode(each["question"], each["context"])
            logits = logits_of(len(encoding.ids), seed=others if number else 1)
            answers.append((number, answer_of(encoding, logits), 2))
        yield lambda _load: SimpleNamespace(answers=answers)

    monkeypatch.setattr(steps, "_refer", refer)
    monkeypatch.setattr(steps, "_loaded", loaded)
    found = steps.compare_answers(order)
    assert [row[:3] for row in found.rows] == [("batch-8", 24, 0), ("batch-1", 24, 23)]
    assert found.problems == ["batch-1: 23 of 24 answers are wrong"]


@pytest.mark.parametrize("answer", ["{}", "[]", '[{"start": 0}]', "no JSON"])
def test_an_answer_of_another_form_is_wrong(tmp_path, answer):
    comparison.write_tokenizer(tmp_path / "tokenizer.json")
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    encoding = tokenizer.encode("the city", "the world of water")
    assert comparison.difference(encoding, logits_of(len(encoding.ids), 1), answer) == math.inf


def test_a_sentence_takes_a_graph_for_128_tokens_and_fits_it():
    # Of words that are one token each, with [CLS] and twice [SEP].
    assert 64 < QUESTION_WORDS + CONTEXT_WORDS + 3 <= 128
    bodies = make_bodies(6, seed=1)
    assert bodies == make_bodies(6, seed=1)
    assert len(set(bodies)) == len(bodies)
    assert bodies != make_bodies(6, seed=2)
    for body in bodies:
        inputs = json.loads(body)["inputs"]
        assert len(inputs) == 6
        for each in inputs:
            assert len(each["question"].split()) == QUESTION_WORDS
            assert len(each["context"].split()) == CONTEXT_WORDS
            assert set(f"{each['question']} {each['context']}".split()) <= set(WORDS)
