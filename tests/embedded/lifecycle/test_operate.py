"""Looking after a model that is deployed: status, invoke, logs, and a bad change undone."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator

import pytest
from botocore.exceptions import ClientError

from tests.support.workbench import MODEL, Workbench

pytestmark = [pytest.mark.cdk, pytest.mark.timeout(900)]

ENDPOINT = f"{MODEL}-local"
GROUP = f"/aws/sagemaker/Endpoints/{ENDPOINT}"
REQUEST = json.dumps({"inputs": "The maximum number of", "parameters": {"max_new_tokens": 3}})


@pytest.fixture(scope="module")
def deployed(account: Workbench) -> Iterator[Workbench]:
    account.deploy(MODEL)
    yield account
    account.destroy(MODEL)


def test_status_in_words_and_as_json(deployed: Workbench) -> None:
    lines = deployed.must("slipway", "status", MODEL).splitlines()
    assert lines[0] == "OK  in service, on what its stack declares"
    shown = "\n".join(lines)
    assert "instances  1 of 1 x ml.g4dn.xlarge (AllTraffic, scaled 1 to 4)" in shown
    assert f"\n{GROUP} AllTraffic/i-" in shown
    assert " INFO model_loaded milliseconds=" in shown

    found = json.loads(deployed.must("slipway", "status", MODEL, "--json", "--lines", "1"))
    assert (found["troubles"], found["notes"], found["in_progress"]) == ([], [], False)
    assert found["endpoint"]["status"] == "InService"
    assert found["endpoint"]["served"] == found["declared"]
    lock = json.loads((deployed.project / f"model_configs/{MODEL}.lock.json").read_text("utf-8"))
    assert found["declared"]["artifact"] == lock["sample"]["compiled"]["digest"]
    assert found["planned"]["artifact"] == found["declared"]["artifact"]
    assert len(found["log_lines"]) == 1


def test_invoke_inline_from_a_file_and_from_standard_input(deployed: Workbench) -> None:
    said = deployed.must("slipway", "invoke", MODEL, REQUEST)
    assert "generated_text" in said
    assert "AllTraffic answered in " in said

    (deployed.project / "request.json").write_text(REQUEST, "utf-8")
    answer = json.loads(
        deployed.must("slipway", "invoke", MODEL, "--file", "request.json", "--json")
    )
    assert answer["variant"] == "AllTraffic"
    assert 0 < answer["latency_milliseconds"] < 60_000
    piped = subprocess.run(
        ["slipway", "invoke", MODEL, "--file", "-"],
        cwd=deployed.project, env=deployed.environment, input=REQUEST.encode(),
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    # Standard output is the answer and nothing else.
    assert json.loads(piped.stdout) == answer["answer"]
    assert piped.stderr.startswith(b"AllTraffic answered in ")

    report = deployed.fails("slipway", "invoke", MODEL, '{"inputs": 5}')
    assert "the model refused the request (400): " in report
    assert "inputs must be a string or an array of strings, not a number." in report


def test_the_containers_log_is_in_the_stacks_group(deployed: Workbench) -> None:
    # What `aws logs tail` of AWS CLI 2 calls; PyPI has AWS CLI 1.
    found = deployed.aws("logs", "filter-log-events", "--log-group-name", GROUP, "--interleaved")
    events = [json.loads(event["message"])["event"] for event in found["events"]]
    assert events[:1] == ["listening"]
    assert "model_loaded" in events


def test_weights_that_do_not_load_are_undone_and_lose_no_request(deployed: Workbench) -> None:
    samples = deployed.project / "samples"
    shutil.copytree(samples / MODEL / "model", samples / "broken")
    graph = samples / "broken" / "model.onnx"
    graph.write_bytes(graph.read_bytes()[:1000])
    config = deployed.config(MODEL)
    lock = config.with_suffix(".lock.json")
    original = config.read_text("utf-8"), lock.read_bytes()
    config.write_text(original[0].replace(f"path: samples/{MODEL}/model", "path: samples/broken"))
    answers: Counter[str] = Counter()
    stopped = threading.Event()

    def ask() -> None:
        runtime = deployed.client("sagemaker-runtime")
        # Paced, so that the CDK CLI gets its share of the processor.
        while not stopped.wait(0.05):
            try:
                response = runtime.invoke_endpoint(
                    EndpointName=ENDPOINT, Body=REQUEST, ContentType="application/json"
                )
                answers[response["Body"].read().decode()] += 1
            except ClientError as error:
                answers[str(error)] += 1

    client = threading.Thread(target=ask)
    client.start()
    try:
        deployed.must("slipway", "publish", MODEL)
        report = deployed.fails(
            "cdk", "deploy", MODEL, "-c", f"models={MODEL}", "--require-approval", "never"
        )
    finally:
        stopped.set()
        client.join()
    assert "ONNX Runtime cannot load model.onnx" in report
    # Every request was answered, and by the weights that served before.
    assert len(answers) == 1, answers
    assert answers.total() > 20

    troubled = deployed.fails("slipway", "status", MODEL)
    assert troubled.splitlines()[0] == (
        "TROUBLE  the last deployment failed and was undone: the stack is UPDATE_ROLLBACK_COMPLETE"
    )
    assert "did not pass the ping" in troubled
    assert ": not deployed\n" in troubled
    assert " ERROR model_load_failed: ONNX Runtime cannot load model.onnx" in troubled

    config.write_text(original[0], "utf-8")
    lock.write_bytes(original[1])
    assert (
        deployed.must("slipway", "status", MODEL)
        .splitlines()[1]
        .startswith(
            "NOTE  a deployment failed and was undone; what is served is what the files say"
        )
    )
