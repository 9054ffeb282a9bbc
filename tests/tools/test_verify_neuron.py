"""`make verify-neuron` on instances of stand-ins for AWS's compilers and devices, over PyTorch."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.containers.neuron.compile.jobs import STANDINS, VERSIONS, write_versions
from tools.verify_neuron.__main__ import main
from tools.verify_neuron.comparison import CONTEXT_WORDS, QUESTION_WORDS, WORDS, make_bodies

ROOT = Path(__file__).parents[2]
_CORES = {"inf1": 4, "inf2": 2}


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


def rehearse(root: Path, tmp_path: Path, *arguments: str) -> tuple[int, Any]:
    result = tmp_path / "result.json"
    status = main(
        ["--quick", "--seconds", "0.2", "--trials", "1", "--folder", str(tmp_path / "files"),
         "--output", str(result), *arguments],
        root=root,
    )  # fmt: skip
    return status, json.loads(result.read_text("utf-8"))


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
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("instance_type", "layouts"),
    [("inf1.xlarge", ["pipeline", "batch-6"]), ("inf2.xlarge", ["batch-8", "batch-1"])],
)
def test_each_step_succeeds_on_an_instance(
    instance_type, layouts, root, tmp_path, workers, monkeypatch
):
    from tools.verify_neuron import reference

    family = instance_type.partition(".")[0]
    has_device(root, instance_type)
    write_versions(workers, VERSIONS[family])
    (tmp_path / "devices").mkdir()
    monkeypatch.setenv("NEURON_STANDIN_DIRECTORY", str(tmp_path / "devices"))
    monkeypatch.setenv("NEURON_STANDIN_CORES", str(_CORES[family]))
    monkeypatch.setenv("NEURON_STANDIN_RECORD", str(tmp_path / "record"))
    status, result = rehearse(root, tmp_path)
    assert [(each["name"], each["detail"]) for each in result["steps"]] == [
        ("model", ""), ("compile", ""), ("answers", ""), ("throughput", "")
    ]  # fmt: skip
    assert status == 0
    assert result["device"]["instance type"] == instance_type
    assert result["device"]["NeuronCores"] == _CORES[family]
    assert result["device"]["driver"] == "2.24.7.0"
    _, compiled, answered, measured = result["steps"]
    assert [row[0] for row in compiled["rows"]] == layouts
    assert [row[:3] for row in answered["rows"]] == [[name, 24, 0] for name in layouts]
    rates = {(row[0], row[2], row[3]): row[4] for row in measured["rows"]}
    assert {name for name, _, _ in rates} == set(layouts)
    assert all(rate > 0 for rate in rates.values())
    if family == "inf1":
        return  # what follows is the comparison's, which knows no instance
    # Graphs of other weights answer wrongly.
    checkpoint = tmp_path / "files" / "quick" / "checkpoint"
    reference.main(str(checkpoint), (checkpoint / "config.json").read_text("utf-8"), "2")
    status, result = rehearse(root, tmp_path, "answers")
    assert status == 1
    _, _, answered, _ = result["steps"]
    assert answered["outcome"] == "failed"
    assert all(f"{name}: 24 of 24 answers are wrong" in answered["detail"] for name in layouts)


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
