"""BERT's configs on the embedded AWS: the sample, on the CPU, in place of a real model."""

import json
from collections.abc import Iterator

import pytest

from tests.support.reduced_designs import measured
from tests.support.workbench import SHIPPED, SHIPPED_MODELS, Workbench

pytestmark = [pytest.mark.cdk, pytest.mark.size("all"), pytest.mark.timeout(900)]

MODELS = ("bert-qa-gpu", "bert-qa-throughput", "bert-qa-latency", "bert-qa-inf2")
NOTES = "ml.inf1.6xlarge has 24 vCPUs. search-qa is in eu-west-1. The platform team owns search-qa."
QUESTIONS = {"Which region is search-qa in?": "eu-west-1", "Which team owns search-qa?": "platform"}


@pytest.fixture(scope="module")
def deployed(account: Workbench) -> Iterator[Workbench]:
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


@pytest.mark.parametrize("model", MODELS)
def test_a_shipped_model_answers(deployed, model):
    answers = [
        deployed.ask(f"{model}-local", {"inputs": {"question": question, "context": NOTES}})
        for question in QUESTIONS
    ]
    assert [answer["answer"] for answer in answers] == list(QUESTIONS.values())
    assert all(NOTES[a["start"] : a["end"]] == a["answer"] for a in answers)


def test_its_design_measures_it(deployed):
    found = measured(deployed, "bert-qa-throughput", "bert-qa")
    assert {cell["levels"]["batch"] for cell in found["cells"]} == {1, 6}
