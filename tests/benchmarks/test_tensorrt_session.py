"""The TensorRT container's benchmark with real servers: what runs without PyTorch and nginx."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.program import ROOT
from benchmarks.tensorrt import session, step
from benchmarks.tensorrt.design import SAMPLE, Cell, System, Workload, full_design, quick
from benchmarks.tensorrt.models import ensure_model
from benchmarks.tensorrt.servers import ServerKey, Servers
from benchmarks.tensorrt.session import measure_model

OURS = (System.SLIPWAY,)
FULL = full_design(
    trials=3, stated_trials=1, cores=2, max_batch_size=16, workers=1, longest_seconds=60, seed=1
)
DESIGN = replace(
    quick(FULL),
    models=(SAMPLE,),
    workloads=(
        Workload("batch", 2, 12, 5, 5, 1, (System.SLIPWAY, System.BARE), (1, 3)),
        Workload("mixed", 1, 12, 2, 9, 4, OURS, (1, 2)),
        Workload("sampled", 2, 12, 5, 5, 1, OURS, (1,), is_sampled=True, top_k=3),
    ),
    seconds=0.01,
)

pytestmark = pytest.mark.size("all")


def nothing_said(_text: str) -> None:
    pass


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def model_directory(models) -> Path:
    return ensure_model(SAMPLE, models, 1, nothing_said)


def test_no_token_of_the_samples_copy_ends_a_text(model_directory):
    for name in ("config.json", "generation_config.json"):
        assert json.loads((model_directory / name).read_text())["eos_token_id"] is None
    committed = ROOT / "samples" / "gpt2-autocomplete" / "model"
    for name in ("model.onnx", "model.safetensors"):
        assert (model_directory / name).read_bytes() == (committed / name).read_bytes()


def test_a_model_is_made_once_and_again_when_something_changes(models, model_directory):
    said: list[str] = []
    assert ensure_model(SAMPLE, models, 1, said.append) == model_directory
    assert said == []
    recipe = json.loads((model_directory / "made.json").read_text())
    (model_directory / "made.json").write_text(json.dumps(recipe | {"seed": 2}))
    (model_directory / "tokenizer.json").unlink()
    ensure_model(SAMPLE, models, 1, said.append)
    assert said == [f"making the sample in {model_directory}"]
    assert (model_directory / "tokenizer.json").is_file()
    assert json.loads((model_directory / "made.json").read_text()) == recipe


def test_everything_of_one_model_is_measured(tmp_path, models, model_directory):
    said: list[str] = []
    found = measure_model(DESIGN, SAMPLE, tmp_path, models=models, say=said.append)
    rounds = [[cell.key for cell in cells] for cells in DESIGN.rounds(SAMPLE)]
    assert [trial.cell.key for trial in found.trials] == [key for keys in rounds for key in keys]
    for trial in found.trials:
        assert len(trial.result.latencies_seconds) == trial.cell.concurrency
        assert trial.result.requests_per_second > 0
    assert found.left_out == {}
    # The bare loop decodes the texts of as many requests as there are clients.
    assert found.agreement == session.Agreement(texts=6, same=6)
    assert said[0] == "starting Slipway"


def test_answers_of_several_servers_are_compared(tmp_path, model_directory, monkeypatch):
    # Slipway's own server in the place of the others: what differs is what the test makes differ.
    monkeypatch.setattr(Servers, "port", lambda self, _key, port=Servers.port: port(self, OURS_KEY))
    design = replace(
        DESIGN,
        workloads=(Workload("batch", 2, 12, 5, 5, 1, (System.SLIPWAY, System.CACHED), (1,)),),
        longest_seconds=0.0,
    )
    found = measure_model(design, SAMPLE, tmp_path, models=model_directory.parent, say=nothing_said)
    # The published layout would answer after the limit: it is warmed up and left out.
    [(cell, seconds)] = found.left_out.items()
    assert cell == Cell(SAMPLE, design.workloads[0], System.CACHED, 1)
    assert seconds > 0
    assert {trial.cell.system for trial in found.trials} == {System.SLIPWAY}
    assert found.agreement == session.Agreement(texts=2, same=2)


OURS_KEY = ServerKey(System.SLIPWAY)


def test_the_step_of_a_batch_that_stays_full_is_measured(model_directory):
    found = step.measure(model_directory, SAMPLE, rows=3, tokens=60, threads=1)
    assert (found["rows"], found["model"]) == (3, "gpt2-autocomplete")
    # Each step makes a token for each row, and never fewer.
    assert 60 <= found["tokens"] < 60 + 6
    assert found["processor_milliseconds_per_token"] > 0


def test_a_server_that_does_not_start_is_reported_with_its_last_words(tmp_path):
    (tmp_path / "logs").mkdir()
    with (
        Servers(
            tmp_path / "logs", tmp_path / "nothing", max_batch_size=8, threads=2,
            environ={}, say=nothing_said,
        ) as servers,
        pytest.raises(BenchmarkError, match="nothing is not a directory: no model data"),
    ):  # fmt: skip
        servers.port(OURS_KEY)
