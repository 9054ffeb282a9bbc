"""Triton endpoints on the embedded AWS, on the real server: the sample, and an own repository."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.groups import need
from tests.support.page_runs import free_port
from tests.support.pages import ROOT, blocks
from tests.support.reduced_designs import measured
from tests.support.workbench import LATEST, Workbench
from tests.unit.planning.triton_repositories import pipeline

need("triton")

pytestmark = [pytest.mark.cdk, pytest.mark.triton, pytest.mark.timeout(900)]

MODEL = "t5-spelling"
ENDPOINT = f"{MODEL}-local"
CORRECTED = {"instnace": "instance", "lamdba fucntion": "lambda function"}
CLIENTS = 16
BATCH_DELAY_MICROSECONDS = 200_000
OWN = "own"
OWN_CONFIG = """\
name: own
description: An ensemble of the user's own
model: {family: bert, parameters: 1000}
serving:
  container: triton
  version: "26.05"
  backend: python
  repository: triton/own
  default_model: pipeline
endpoint:
  instances: [ml.c5.xlarge]
alarms:
  model_latency_p99_milliseconds: 500
"""
GUIDE = ROOT / "docs/guides/triton.md"
CLIENTS_OF_THE_GUIDE = [
    block for block in blocks(GUIDE) if (block.language, *block.labels) == ("python", "client")
]


@pytest.fixture(scope="module")
def metrics_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory, metrics_port: int) -> Iterator[Workbench]:
    with Workbench(tmp_path_factory.mktemp("triton")) as bench:
        config = bench.config(MODEL)
        text = config.read_text("utf-8")
        told = (
            # On a busy machine requests arrive one by one, and none would find another.
            f"  max_batch_delay_microseconds: {BATCH_DELAY_MICROSECONDS}\n"
            f"  environment:\n    SLIPWAY_METRICS_PORT: '{metrics_port}'\n"
        )
        config.write_text(text.replace("\nartifacts:\n", f"{told}\nartifacts:\n", 1), "utf-8")
        bench.config(OWN).write_text(OWN_CONFIG, "utf-8")
        for path, content in pipeline().items():
            file = bench.project / "triton" / OWN / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, "utf-8")
        bench.bootstrap()
        bench.deploy_foundation()
        bench.must("slipway", "publish", MODEL)
        bench.must("slipway", "publish", OWN)
        bench.deploy(MODEL, OWN)
        yield bench
        bench.destroy_from(LATEST, MODEL, OWN)
        assert bench.serving_processes() == []
        for name in (MODEL, OWN):
            assert bench.stack_status(f"{name}-local") is None
            assert bench.must("slipway", "leftovers", name).startswith("Nothing is left of")


def ask(bench: Workbench, *texts: str) -> Any:
    tensor = {"name": "TEXT", "shape": [len(texts), 1], "datatype": "BYTES", "data": texts}
    (answer,) = bench.ask(ENDPOINT, {"inputs": [tensor]})["outputs"]
    return answer["data"]


def counted(port: int, name: str) -> float:
    page = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text
    (value,) = re.findall(rf'^{name}{{model="{MODEL}",version="1"}} (\S+)$', page, re.MULTILINE)
    return float(value)


def test_words_are_corrected(deployed):
    assert ask(deployed, *CORRECTED) == list(CORRECTED.values())
    shown = deployed.must("slipway", "invoke", MODEL, "--text", "instnace")
    assert "instance" in shown


@pytest.mark.parametrize("block", CLIENTS_OF_THE_GUIDE, ids=lambda block: block.place)
def test_a_client_of_the_guide_gets_the_texts(deployed, block):
    source = block.text.replace("t5-spelling-production", ENDPOINT)
    assert source != block.text
    assert deployed.must("python", "-c", source).splitlines()[-1] == str(list(CORRECTED.values()))


def test_requests_share_batches_of_two_copies(deployed, metrics_port):
    texts, batches = (
        counted(metrics_port, f"nv_inference_{name}") for name in ("count", "exec_count")
    )
    requests = list(CORRECTED) * CLIENTS
    with ThreadPoolExecutor(CLIENTS) as pool:
        answers = list(pool.map(lambda text: ask(deployed, text), requests))
    assert [answer for (answer,) in answers] == [CORRECTED[text] for text in requests]
    made = counted(metrics_port, "nv_inference_count") - texts
    assert made == len(requests)
    assert counted(metrics_port, "nv_inference_exec_count") - batches < made
    log = deployed.client("logs").filter_log_events(
        logGroupName=f"/aws/sagemaker/Endpoints/{ENDPOINT}", filterPattern="copy_loaded"
    )["events"]
    names = {json.loads(event["message"])["name"] for event in log}
    # The config has two instances of the endpoint, each with two copies.
    assert names == {f"{MODEL}_0_0", f"{MODEL}_0_1"}


def test_an_own_repository_answers_through_its_ensemble(deployed):
    tensor = {"name": "RAW", "shape": [1, 1], "datatype": "BYTES", "data": ["ab"]}
    answer = deployed.ask(f"{OWN}-local", {"inputs": [tensor]})
    assert answer["model_name"] == "pipeline"
    (output,) = answer["outputs"]
    assert (output["name"], output["data"]) == ("CLEAN", ["ab"])


def test_the_shipped_lock_is_of_the_committed_sample(deployed):
    lock = deployed.project / "model_configs" / f"{MODEL}.lock.json"
    published = json.loads(lock.read_text("utf-8"))
    committed = json.loads(Path("model_configs", lock.name).read_text("utf-8"))
    assert published["sample"]["compiled"] == committed["sample"]["compiled"]


@pytest.mark.size("all")
def test_its_design_measures_it(deployed):
    found = measured(deployed, MODEL, "t5-spelling")
    for cell in found["cells"]:
        if cell["trials"]:
            assert cell["figures"]["tokens_per_second"]["value"] > 0
