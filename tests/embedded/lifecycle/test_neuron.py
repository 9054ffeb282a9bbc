"""The configs for Neuron on the embedded AWS: the sample, on the CPU, in place of a real model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.embedded.workbench import Workbench

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
    finally:
        bench.destroy(model)
    assert bench.serving_processes() == []
