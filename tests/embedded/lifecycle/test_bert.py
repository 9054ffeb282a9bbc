"""BERT's configs on the embedded AWS: the sample, on the CPU, in place of a real model."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.program import ROOT
from tests.support.reduced_designs import measured
from tests.support.workbench import SHIPPED, SHIPPED_MODELS, Workbench

pytestmark = [pytest.mark.cdk, pytest.mark.size("all"), pytest.mark.timeout(900)]

MODELS = ("bert-qa-gpu", "bert-qa-throughput", "bert-qa-latency", "bert-qa-inf2")
NOTES = "ml.inf1.6xlarge has 24 vCPUs. search-qa is in eu-west-1. The platform team owns search-qa."
QUESTIONS = {"Which region is search-qa in?": "eu-west-1", "Which team owns search-qa?": "platform"}


@pytest.fixture(scope="module")
def deployed(account: Workbench) -> Iterator[Workbench]:
    """Every shipped model, published and deployed."""
    folder = account.project / "model_configs"
    committed = {path: path.read_bytes() for path in folder.glob("*.lock.json")}
    told = json.loads(account.must("slipway", "publish", "--all", "--json"))
    # Every model with a sample; `test_triton.py` deploys the one that needs a real Triton.
    shipped = sorted([*SHIPPED_MODELS, "t5-spelling"])
    assert [each["name"] for each in told["published"]] == shipped
    assert told["problems"] == []
    locks = {path: path.read_bytes() for path in folder.glob("*.lock.json")}
    assert locks == committed, "a committed lock is not of its committed sample"
    account.deploy_from(SHIPPED, *MODELS)
    assert account.serving_processes() != []
    yield account
    account.destroy_from(SHIPPED, *MODELS)
    assert account.serving_processes() == []


def ask(bench: Workbench, model: str, body: Any) -> Any:
    response = bench.client("sagemaker-runtime").invoke_endpoint(
        EndpointName=f"{model}-local",
        ContentType="application/json",
        Body=json.dumps(body),
    )
    return json.load(response["Body"])


@pytest.mark.parametrize("model", MODELS)
def test_a_shipped_model_answers(deployed: Workbench, model: str) -> None:
    answers = [
        ask(deployed, model, {"inputs": {"question": question, "context": NOTES}})
        for question in QUESTIONS
    ]
    assert [answer["answer"] for answer in answers] == list(QUESTIONS.values())
    assert all(NOTES[a["start"] : a["end"]] == a["answer"] for a in answers)


def load(bench: Workbench, model: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs the command that benchmarks/neuron.md measures endpoints with."""
    command = (
        sys.executable, "-m", "benchmarks.neuron.endpoint", model,
        "--project", str(bench.project), *options,
        "--processes", "2", "--seconds", "2", "--warm-up-seconds", "1",
    )  # fmt: skip
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize(
    ("loop", "options"),
    [
        ("closed", ["--clients", "3", "--sentences", "2"]),
        ("open", ["--requests-per-second", "10", "--connections", "4"]),
    ],
)
def test_an_endpoint_can_be_loaded(deployed: Workbench, loop: str, options: list[str]) -> None:
    loaded = load(deployed, "bert-qa-inf2", *options)
    assert loaded.returncode == 0, loaded.stderr
    found = json.loads(loaded.stdout)
    assert found["loop"] == loop
    assert 0 < found["p50_milliseconds"] <= found["p95_milliseconds"] <= found["p99_milliseconds"]
    if loop == "closed":
        assert found["sentences_per_second"] > 0
    else:
        # Of two processes with 10 arrivals each on average.
        assert 2 < found["requests"] < 60


def test_an_endpoint_that_is_not_there_ends_the_load(deployed: Workbench) -> None:
    absent = load(deployed, "bert-qa", "--clients", "3", "--sentences", "2")
    assert absent.returncode == 1
    assert "The load ended early: bert-qa-local: a request was answered with 400: " in absent.stderr
    assert "Endpoint bert-qa-local of account 123456789012 not found" in absent.stderr


def test_its_design_measures_it(deployed: Workbench) -> None:
    found = measured(deployed, "bert-qa-throughput", "bert-qa")
    assert {cell["levels"]["batch"] for cell in found["cells"]} == {1, 6}
