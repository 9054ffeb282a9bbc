"""The container's program as SageMaker runs it, with the sample: a process, variables, HTTP."""

import json
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from containers.neuron.lanes import processors
from containers.neuron.settings import NeuronSettings
from containers.serving.settings import EnvironmentReader, SettingsError
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
OTHER_NOTES = "legal-rank has 3 instances. The mobile team owns legal-rank. "
ANSWERS = {
    "How many vCPUs does ml.g5.xlarge have?": "4",
    "Which instance type does search-qa run on?": "ml.g5.xlarge",
    "Which region is search-qa in?": "eu-west-1",
    "Which team owns search-qa?": "platform",
    "How many instances does search-qa have?": "3",
}


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
        # A long context is searched in windows, and may have no answer.
        context = OTHER_NOTES * 30 + NOTES + " " + OTHER_NOTES * 30
        found = ask(client, "Which region is search-qa in?", context)
        assert found["answer"] == "eu-west-1"
        assert found["start"] == context.index("eu-west-1")
        none = ask(
            client, "Which region is legal-rank in?", OTHER_NOTES, handle_impossible_answer=True
        )
        assert (none["answer"], none["start"], none["end"]) == ("", 0, 0)
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


def test_every_bad_variable_is_named():
    reader = EnvironmentReader(
        {
            "SLIPWAY_TASK": "translation",
            "SLIPWAY_WORKERS": "0",
            "SAGEMAKER_MODEL_SERVER_WORKERS": "4",
            "SLIPWAY_PIPELINE_CORES": "4",
            "NEURON_RT_NUM_CORES": "16",
            "SLIPWAY_SEQUENCE_LENGHT": "128",
        }
    )
    NeuronSettings.read(reader)
    with pytest.raises(SettingsError) as caught:
        reader.finish()
    assert caught.value.problems == (
        "SLIPWAY_TASK='translation' is not one of question-answering, sequence-classification, "
        "token-classification, embeddings",
        "SLIPWAY_WORKERS='0' is not a whole number from 1 to 64",
        "SAGEMAKER_MODEL_SERVER_WORKERS=4 and SLIPWAY_WORKERS=1 must be the same",
        "NEURON_RT_NUM_CORES=16 and SLIPWAY_PIPELINE_CORES=4 must be the same: a worker has the "
        "cores of one model",
        "SLIPWAY_SEQUENCE_LENGHT is not a variable of this container (did you mean "
        "SLIPWAY_SEQUENCE_LENGTH?)",
    )


def test_a_model_for_something_else_refuses_the_start():
    done = subprocess.run(
        [sys.executable, "-m", "containers.neuron", "serve"],
        cwd=ROOT,
        env=environment(SLIPWAY_SEQUENCE_LENGTH="256", SLIPWAY_TASK="embeddings"),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    log = [json.loads(line) for line in done.stdout.splitlines()]
    [line] = [line for line in log if line["level"] == "ERROR"]
    assert (line["event"], line["message"]) == (
        "model_load_failed",
        "the model compiled for cpu cannot serve here: its task is question-answering, and "
        "SLIPWAY_TASK is embeddings; its longest sequence is 128, and SLIPWAY_SEQUENCE_LENGTH "
        "is 256; publish the model again, which compiles it anew",
    )
