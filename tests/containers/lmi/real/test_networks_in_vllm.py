"""Small random networks of the ready configs' architectures: read, planned, and served by vLLM.

`slipway init` reads each checkpoint, vLLM 0.17 loads it on the CPU, and its answer is that of
Transformers. What vLLM keeps of a token and of a request is what the plan counts. Nothing has the
published size. Weights of the fp8 and the mxfp4 config are plain ones, for which a CPU has kernels;
all but the latter's are computed in fp32. Images are not sent. AWS's image has vLLM 0.23, which was
not run.
"""

import json
import os
import subprocess
from types import SimpleNamespace

import pytest

from slipway.config.networks import Network
from slipway.facts.instances import instance_types
from slipway.planning.families import deployment_of
from slipway.planning.memory import estimate
from slipway.project import Project
from tests.containers.lmi.real import servers
from tests.containers.lmi.real.small_networks import (
    CACHE_GIB,
    HYBRIDS,
    IN_BF16,
    LONGEST,
    NETWORKS,
    PUBLISHED,
)
from tests.support.projects import write_project
from tests.unit.cli.first_configs import ENVIRONMENTS

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(600)]

PYTHON = servers.ROOT / "build" / "vllm" / "bin" / "python"
PROGRAM = "tests.containers.lmi.real.small_networks"
GIB = 2**30


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The folders of networks, and what Transformers and vLLM say.

    One process writes all checkpoints, and one serves them: most of the time goes to imports.
    """
    directory = tmp_path_factory.mktemp("networks")
    environment = {"PYTHONPATH": str(servers.ROOT), "VLLM_CACHE_ROOT": str(directory / "cache")}
    for step in ("write", "serve"):
        finished = subprocess.run(
            [PYTHON, "-m", PROGRAM, step, str(directory)],
            capture_output=True,
            text=True,
            check=False,
            cwd=servers.ROOT,
            env={**os.environ, **environment},
        )
        told = f"{finished.stdout[-4000:]}{finished.stderr[-8000:]}"
        # The one network that needs it is not in a build/vllm of before.
        assert "No module named 'torchvision'" not in told, "`make vllm` renews build/vllm"
        assert finished.returncode == 0, told
    answers, served = (
        json.loads((directory / f"{name}.json").read_text("utf-8"))
        for name in ("answers", "served")
    )
    return SimpleNamespace(checkpoints=directory, answers=answers, served=served)


@pytest.mark.parametrize("name", NETWORKS)
def test_vllm_answers_as_transformers_does(ran, name):
    # Two ways of rounding to bf16 part after a few tokens.
    first = slice(1 if name in IN_BF16 else None)
    assert ran.served[name]["answer"][first] == pytest.approx(ran.answers[name][first], abs=1e-3)
    assert len(ran.served[name]["answer"]) == len(ran.answers[name])


@pytest.mark.parametrize("name", NETWORKS)
def test_the_plan_counts_the_cache_that_vllm_keeps(
    ran, name, tmp_path, monkeypatch, slipway_command
):
    write_project(tmp_path, {}, environments=ENVIRONMENTS)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "checkpoint").symlink_to(ran.checkpoints / name)
    status, _, told = slipway_command(
        "init", name, "--weights", "checkpoint", "--latency-milliseconds", "2000"
    )
    assert status == 0, told
    config = Project(tmp_path).config(name, "ci").config
    published, _ = NETWORKS[name]
    assert config.model.architecture == PUBLISHED[published]["config"]["architectures"][0]
    vllm = ran.served[name]
    requests = vllm["tokens"] // LONGEST or 1
    kept = sum(
        layer["token_bytes"] * min(LONGEST, layer["window"] or LONGEST) for layer in vllm["layers"]
    )
    planned = cache_bytes(tmp_path, config, requests, "bf16" if name in IN_BF16 else "fp32")
    assert planned == pytest.approx(requests * kept, rel=0.002)
    if vllm["layers"] and not any(layer["window"] for layer in vllm["layers"]):
        # So many tokens fit into what vLLM was given, by its own count.
        assert planned == pytest.approx(CACHE_GIB * GIB, rel=0.002)


def cache_bytes(root, config, requests, dtype):
    """What the plan counts for so many of the longest requests."""
    batch = {"max_rolling_batch_size": requests, "dtype": dtype}
    lengths = {"max_input_tokens": LONGEST - 1, "max_new_tokens": 1}
    serving = config.serving.model_copy(update=batch | lengths)
    deployment = deployment_of(
        config.model_copy(update={"serving": serving}), Project(root).environment("ci")
    )
    found = estimate(deployment, instance_types()[config.endpoint.instances[0]])
    assert found is not None
    assert found.cache_gib is not None, found.cache_unknown
    return found.cache_gib * GIB


@pytest.mark.parametrize("name", HYBRIDS)
def test_a_state_is_as_large_as_vllm_makes_it(ran, name):
    """By vLLM's own functions; it has no kernels for these networks on a CPU."""
    row = PUBLISHED[name]
    (layers,) = (group["layers"] for group in row["cache"] if "state" in group)
    assert Network(row["config"]).shape()["state_bytes"] == layers * sum(ran.served["states"][name])
