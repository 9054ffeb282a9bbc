"""`make verify-gpu` on stand-ins for TensorRT, CUDA and `nvidia-smi`, with the real Triton."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.groups import load
from tools.verify_gpu.__main__ import STEPS, main, missing

ROOT = Path(__file__).parents[2]
STANDINS = Path(__file__).parent / "gpu_standins"


def test_a_machine_without_a_gpu_gets_a_list_of_all_that_it_lacks(capsys, monkeypatch):
    lacked = ("tensorrt", "cuda.bindings.runtime", "torch")
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in lacked else find("json")
    )
    assert main([], start=lambda: "the NVIDIA driver is not installed: install it") == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == [
        "This machine cannot run `make verify-gpu` yet:",
        "- the NVIDIA driver is not installed: install it",
    ]
    assert [line.partition(" is not installed")[0] for line in lines[2:]] == [
        f"- the Python module {name}" for name in lacked
    ]
    assert "pip install tensorrt-cu12" in lines[2]


def test_the_driver_library_of_this_machine_is_asked(capsys):
    if Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has a GPU")
    problem = missing()[0]
    assert problem.startswith(("the NVIDIA driver is not installed", "CUDA finds no GPU"))


@pytest.mark.torch
@pytest.mark.triton
@pytest.mark.size("all")
@pytest.mark.timeout(900)
def test_each_step_succeeds_on_stand_ins(tmp_path):
    from slipway.embedded_aws.hosting.families.triton.triton_server import find_server

    result = tmp_path / "result.json"
    environment = os.environ | {
        "PATH": os.pathsep.join((str(STANDINS / "bin"), os.environ["PATH"])),
        "PYTHONPATH": os.pathsep.join(map(str, (STANDINS, ROOT))),
        "TEST_TRITON_HOME": str(find_server(os.environ).parents[1]),
        "TRITON_HOME": str(STANDINS),
        # Where the stand-in for the builder keeps its graphs.
        "TMPDIR": str(tmp_path),
    }
    ended = subprocess.run(
        [sys.executable, "-m", "tests.tools.gpu_rehearsal", "--quick", "--seconds", "0.2",
         "--trials", "1", "--folder", str(tmp_path / "files"), "--output", str(result)],
        cwd=ROOT, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    found = json.loads(result.read_text("utf-8"))
    records = {each["name"]: each for each in found["steps"]}
    assert {name: each["detail"] for name, each in records.items()} == {
        step.name: "" for step in STEPS
    }
    assert ended.returncode == 0, ended.stderr
    assert found["device"]["compute_capability"] == "sm86"
    assert found["device"]["driver"] == "580.00"
    compared = records["tokens"]["facts"]
    assert compared["back end"] == "tensorrt"
    for reference in ("ONNX Runtime's (float32)", "PyTorch's (float32)"):
        # Half precision may choose another token of nearly the same logit.
        assert int(compared[f"texts equal to {reference}"].split()[0]) >= 15
    assert compared["different texts"] == 20
    systems = {row[0] for row in records["throughput"]["rows"]}
    assert systems == {
        "Slipway", "bare engine loop", "PyTorch", "PyTorch with a cache, batched",
    }  # fmt: skip
    assert all(row[2] > 0 for row in records["throughput"]["rows"])
    assert records["memory"]["facts"]["estimated for"].startswith("ml.g5.")
    assert records["t5-triton"]["facts"] == {"texts equal to the loop's": "16 of 16"}


@pytest.mark.torch
def test_a_wrong_token_is_told_from_rounding():
    torch = load("torch", group="torch")
    transformers = load("transformers", group="torch")
    from tools.verify_gpu.closeness import compare_gpt2

    torch.manual_seed(1)
    shape = {"n_layer": 2, "n_embd": 64, "n_head": 2, "vocab_size": 256, "n_positions": 32}
    config = transformers.GPT2Config(**shape, initializer_range=0.1, eos_token_id=None)
    model = transformers.GPT2LMHeadModel(config).eval()
    prompts = [[3, 5, 7, 9], [11, 13, 17, 19]]
    ids = torch.tensor(prompts)
    right = model.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=6, pad_token_id=0
    )[:, 4:].tolist()
    assert compare_gpt2(model, prompts, right).problems == []
    wrong = [right[0], [*right[1][:5], (right[1][5] + 1) % 256]]
    [problem] = compare_gpt2(model, prompts, wrong).problems
    assert "away from the best token" in problem


@pytest.mark.torch
@pytest.mark.vllm
@pytest.mark.timeout(600)
def test_the_loop_of_the_real_vllm_is_timed(tmp_path):
    transformers = load("transformers", group="torch")

    shape = {"n_layer": 2, "n_embd": 64, "n_head": 2, "vocab_size": 256, "n_positions": 64}
    config = transformers.GPT2Config(**shape, eos_token_id=None, bos_token_id=None)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path / "checkpoint")
    batch = [[text * 12 + token for token in range(12)] for text in range(10)]
    document = {
        "checkpoint": str(tmp_path / "checkpoint"), "batches": [batch, batch * 2],
        "new_tokens": 30, "seconds": 0.1, "trials": 2,
    }  # fmt: skip
    ended = subprocess.run(
        [ROOT / "build" / "vllm" / "bin" / "python", "-m", "tools.verify_gpu.vllm_loop"],
        cwd=ROOT, env=os.environ | {"VLLM_CPU_KVCACHE_SPACE": "1"}, input=json.dumps(document),
        capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    rates = json.loads(ended.stdout)
    assert [len(trials) for trials in rates] == [2, 2]
    assert all(rate > 0 for trials in rates for rate in trials)
