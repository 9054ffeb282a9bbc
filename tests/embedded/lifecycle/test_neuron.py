"""The configs for Neuron on the embedded AWS: the sample, on the CPU, in place of a real model."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.program import ROOT
from tests.support.workbench import Workbench

pytestmark = [pytest.mark.cdk, pytest.mark.timeout(900)]

NOTES = "ml.inf1.6xlarge has 24 vCPUs. search-qa is in eu-west-1. The platform team owns search-qa."
QUESTIONS = {"Which region is search-qa in?": "eu-west-1", "Which team owns search-qa?": "platform"}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    with Workbench(tmp_path_factory.mktemp("neuron")) as bench:
        bench.bootstrap()
        bench.must("cdk", "deploy", "foundation", "--require-approval", "never")
        yield bench


def ask(bench: Workbench, model: str, body: Any) -> Any:
    response = bench.client("sagemaker-runtime").invoke_endpoint(
        EndpointName=f"{model}-local",
        ContentType="application/json",
        Body=json.dumps(body),
    )
    return json.load(response["Body"])


@pytest.mark.parametrize("model", ["bert-qa-throughput", "bert-qa-latency", "bert-qa-inf2"])
def test_a_shipped_config_is_published_deployed_and_answers(bench: Workbench, model: str) -> None:
    lock = bench.project / "model_configs" / f"{model}.lock.json"
    committed = lock.read_bytes()
    bench.must("slipway", "publish", model)
    assert lock.read_bytes() == committed, "the committed lock is not of the committed sample"
    bench.deploy(model)
    try:
        answers = [
            ask(bench, model, {"inputs": {"question": question, "context": NOTES}})
            for question in QUESTIONS
        ]
        assert [answer["answer"] for answer in answers] == list(QUESTIONS.values())
        assert all(NOTES[a["start"] : a["end"]] == a["answer"] for a in answers)
        assert bench.serving_processes() != []
        if model == "bert-qa-inf2":
            check_that_it_can_be_loaded(bench, model)
    finally:
        bench.destroy(model)
    assert bench.serving_processes() == []


def check_that_it_can_be_loaded(bench: Workbench, model: str) -> None:
    """With the command that benchmarks/neuron.md measures endpoints with."""
    command = (
        sys.executable, "-m", "benchmarks.neuron.endpoint", model, "--project", str(bench.project),
        "--clients", "3", "--processes", "2", "--sentences", "2",
        "--seconds", "2", "--warm-up-seconds", "1",
    )  # fmt: skip
    loaded = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert loaded.returncode == 0, loaded.stderr
    found = json.loads(loaded.stdout)
    assert found["requests"] > 0
    assert found["sentences_per_second"] > 0
    assert 0 < found["p50_milliseconds"] <= found["p95_milliseconds"] <= found["p99_milliseconds"]
    absent = subprocess.run(
        [*command[:3], "bert-qa", *command[4:]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert absent.returncode == 1
    assert "The load ended early: bert-qa-local: An error occurred (ValidationError)" in (
        absent.stderr
    )
