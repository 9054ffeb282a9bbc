"""The container's program as SageMaker runs it, with the sample: a process, variables, HTTP."""

import json
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from containers.neuron.lanes import processors
from tests.containers.neuron.running_program import environment, serving
from tests.support.logging_programs import PATIENCE_SECONDS, ROOT

# What the plan of model_configs/bert-qa-throughput.yaml gives the container.
PLANNED = {
    "NEURON_RT_NUM_CORES": "1",
    "SAGEMAKER_MODEL_SERVER_WORKERS": "4",
    "SLIPWAY_DTYPE": "bf16",
    "SLIPWAY_MAX_BATCH_DELAY_MILLISECONDS": "5",
    "SLIPWAY_MAX_BATCH_SIZE": "6",
    "SLIPWAY_MAX_QUEUE_LENGTH": "256",
    "SLIPWAY_PIPELINE_CORES": "1",
    "SLIPWAY_REQUEST_TIMEOUT_SECONDS": "55",
    "SLIPWAY_SEQUENCE_LENGTH": "128",
    "SLIPWAY_TASK": "question-answering",
    "SLIPWAY_WORKERS": "4",
}
NOTES = (
    "ml.g5.xlarge has 4 vCPUs. search-qa is deployed on ml.g5.xlarge. search-qa is in eu-west-1. "
    "The platform team owns search-qa. search-qa has 3 instances."
)
ANSWERS = {
    "How many vCPUs does ml.g5.xlarge have?": "4",
    "Which instance type does search-qa run on?": "ml.g5.xlarge",
    "Which region is search-qa in?": "eu-west-1",
    "Which team owns search-qa?": "platform",
    "How many instances does search-qa have?": "3",
}


@pytest.fixture(scope="module")
def client():
    with serving() as (_, client, _):
        yield client


def ask(client, question, context=NOTES, **parameters):
    response = client.post(
        "/invocations",
        json={"inputs": {"question": question, "context": context}, "parameters": parameters},
    )
    assert response.status_code == 200, response.text
    return response.json()


def test_the_sample_answers_with_the_plans_variables_and_drains():
    with serving(**PLANNED) as (process, client, placed):
        assert placed["workers"] == min(4, processors())
        assert placed["reason"] == f"4 workers wanted, and the CPU has {processors()} processors"
        assert client.get("/ping").status_code == 200
        with ThreadPoolExecutor(len(ANSWERS)) as threads:
            found = list(threads.map(lambda question: ask(client, question), ANSWERS))
        assert [answer["answer"] for answer in found] == list(ANSWERS.values())
        for answer in found:
            assert NOTES[answer["start"] : answer["end"]] == answer["answer"]
        # Of whichever thread started them.
        children = [
            child
            for task in Path(f"/proc/{process.pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
        assert len(children) == placed["workers"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0
        assert not [each for each in children if Path(f"/proc/{each}").exists()]


def test_a_long_context_is_searched_in_windows_and_may_have_no_answer(client):
    other = "legal-rank has 3 instances. The mobile team owns legal-rank. "
    context = other * 30 + NOTES + " " + other * 30
    assert len(context) > 3000
    found = ask(client, "Which region is search-qa in?", context)
    assert found["answer"] == "eu-west-1"
    assert found["start"] == context.index("eu-west-1")
    response = client.post(
        "/invocations",
        json={
            "inputs": [
                {"question": "Which region is search-qa in?", "context": NOTES},
                {"question": "Which region is legal-rank in?", "context": other.strip()},
            ],
            "parameters": {"handle_impossible_answer": True},
        },
    )
    first, second = response.json()
    assert first["answer"] == "eu-west-1"
    assert (second["answer"], second["start"], second["end"]) == ("", 0, 0)


def test_a_bad_request_is_told_all_that_is_wrong(client):
    response = client.post(
        "/invocations", json={"inputs": {"question": ""}, "parameters": {"topk": 1}}
    )
    assert response.status_code == 400
    assert response.json()["error"]["message"].startswith(
        "inputs.question is an empty string: it must hold some text. "
        "inputs.context is missing: a string. "
        "Unknown parameter 'topk' (did you mean top_k?)"
    )


def test_the_document_is_not_served_outside_of_the_embedded_aws(client):
    assert client.get("/docs").status_code == 404
    assert client.get("/openapi.json").status_code == 404


def failed(**variables):
    done = subprocess.run(
        [sys.executable, "-m", "containers.neuron", "serve"],
        cwd=ROOT,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_bad_variable_is_named():
    [line] = failed(
        SLIPWAY_TASK="translation",
        SLIPWAY_WORKERS="0",
        SAGEMAKER_MODEL_SERVER_WORKERS="4",
        SLIPWAY_PIPELINE_CORES="4",
        NEURON_RT_NUM_CORES="16",
        SLIPWAY_SEQUENCE_LENGHT="128",
    )
    assert line["event"] == "settings_invalid"
    assert line["problems"] == [
        "SLIPWAY_TASK='translation' is not one of question-answering, sequence-classification, "
        "token-classification, embeddings",
        "SLIPWAY_WORKERS='0' is not a whole number from 1 to 64",
        "SAGEMAKER_MODEL_SERVER_WORKERS=4 and SLIPWAY_WORKERS=1 must be the same",
        "NEURON_RT_NUM_CORES=16 and SLIPWAY_PIPELINE_CORES=4 must be the same: a worker has the "
        "cores of one model",
        "SLIPWAY_SEQUENCE_LENGHT is not a variable of this container (did you mean "
        "SLIPWAY_SEQUENCE_LENGTH?)",
    ]


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"SLIPWAY_SEQUENCE_LENGTH": "256", "SLIPWAY_TASK": "embeddings"},
            "the model compiled for cpu cannot serve here: its task is question-answering, and "
            "SLIPWAY_TASK is embeddings; its longest sequence is 128, and SLIPWAY_SEQUENCE_LENGTH "
            "is 256; publish the model again, which compiles it anew",
        ),
        (
            {"SM_MODEL_DIR": "samples/gpt2-autocomplete/model"},
            "samples/gpt2-autocomplete/model lacks neuron.json",
        ),
    ],
)
def test_a_model_for_something_else_refuses_the_start(variables, message):
    [line] = [line for line in failed(**variables) if line["level"] == "ERROR"]
    assert (line["event"], line["message"]) == ("model_load_failed", message)
