"""A change that does not work, undone by the real CDK CLI while requests go on."""

import json
import shutil
from collections.abc import Iterator

import pytest
from botocore.exceptions import ClientError

from tests.support.clients import Clients
from tests.support.workbench import MODEL, SHIPPED, Workbench

pytestmark = [pytest.mark.cdk, pytest.mark.size("all"), pytest.mark.timeout(900)]

ENDPOINT = f"{MODEL}-local"
REQUEST = json.dumps({"inputs": "The maximum number of", "parameters": {"max_new_tokens": 3}})


@pytest.fixture
def deployed(account: Workbench) -> Iterator[Workbench]:
    """The model; its files are as they were afterwards."""
    config = account.config(MODEL)
    lock = config.with_suffix(".lock.json")
    original = config.read_text("utf-8"), lock.read_bytes()
    account.deploy_from(SHIPPED, MODEL)
    yield account
    config.write_text(original[0], "utf-8")
    lock.write_bytes(original[1])
    account.destroy_from(SHIPPED, MODEL)


def test_weights_that_do_not_load_are_undone_and_lose_no_request(deployed):
    samples = deployed.project / "samples"
    shutil.copytree(samples / MODEL / "model", samples / "broken")
    graph = samples / "broken" / "model.onnx"
    graph.write_bytes(graph.read_bytes()[:1000])
    config = deployed.config(MODEL)
    lock = config.with_suffix(".lock.json")
    original = config.read_text("utf-8"), lock.read_bytes()
    config.write_text(original[0].replace(f"path: samples/{MODEL}/model", "path: samples/broken"))

    runtime = deployed.client("sagemaker-runtime")

    def ask() -> str:
        try:
            response = runtime.invoke_endpoint(
                EndpointName=ENDPOINT, Body=REQUEST, ContentType="application/json"
            )
            return str(response["Body"].read().decode())
        except ClientError as error:
            return str(error)

    # Paced, so that the CDK CLI gets its share of the processor.
    with Clients(ask, pause_seconds=0.05) as clients:
        deployed.must("slipway", "publish", MODEL)
        report = deployed.fails(
            "cdk", "deploy", MODEL, "-c", f"models={MODEL}", "--require-approval", "never"
        )
    assert "ONNX Runtime cannot load model.onnx" in report
    # Every request was answered, and by the weights that served before.
    assert len(clients.answers) == 1, clients.answers
    assert clients.answers.total() > 20

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
