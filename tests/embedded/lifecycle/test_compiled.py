"""A checkpoint without a graph, compiled by a training job when it is published, then deployed."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.groups import load
from tests.support.workbench import LATEST, MODEL, Workbench

torch = load("torch", group="torch")
load("transformers", group="torch")

pytestmark = [pytest.mark.cdk, pytest.mark.torch, pytest.mark.timeout(900)]

ENDPOINT = f"{MODEL}-local"
PROMPT = "The Amazon Resource Name (ARN)"
NEW_TOKENS = 8
# The published case's own repository is too large to fetch for a test.
CHECKPOINT = "build/checkpoint"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """An account whose environment deploys releases, and the sample's checkpoint as weights."""
    with Workbench(tmp_path_factory.mktemp("compiled")) as bench:
        environments = bench.project / "environments.yaml"
        text = environments.read_text("utf-8")
        assert text.count("artifacts: sample") == 1
        environments.write_text(text.replace("artifacts: sample", "artifacts: release"), "utf-8")
        checkpoint = bench.project / CHECKPOINT
        sample = bench.project / "samples" / MODEL / "model"
        shutil.copytree(sample, checkpoint, ignore=shutil.ignore_patterns("*.onnx"))
        _take_weights_from(bench.config(MODEL), CHECKPOINT)
        bench.bootstrap()
        bench.deploy_foundation()
        yield bench


def _take_weights_from(config: Path, path: str) -> None:
    lines = config.read_text("utf-8").splitlines()
    first = lines.index("    source: hub")
    indented = [line for line in lines[first:] if line.startswith("    ")]
    end = first + next(
        number for number, line in enumerate(lines[first:]) if not line.startswith("    ")
    )
    assert indented
    lines[first:end] = ["    source: path", f"    path: {path}"]
    config.write_text("\n".join(lines) + "\n", "utf-8")


def _expected(checkpoint: Path) -> str:
    """What transformers itself generates."""
    from transformers import AutoTokenizer, GPT2LMHeadModel

    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    model = GPT2LMHeadModel.from_pretrained(checkpoint).eval()
    inputs = tokenizer(PROMPT, return_tensors="pt")
    with torch.inference_mode():
        (tokens,) = model.generate(
            **inputs, max_new_tokens=NEW_TOKENS, do_sample=False,
            pad_token_id=model.config.eos_token_id,
        )  # fmt: skip
    text: str = tokenizer.decode(tokens[inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    return text


def test_published_compiled_deployed_invoked_and_destroyed(bench: Workbench) -> None:
    refused = bench.fails("slipway", "plan", MODEL)
    assert "the release was never published" in refused
    output = bench.must("slipway", "publish", MODEL)
    assert (
        "Compiled for cpu, as the embedded AWS has no accelerator, by training job compile-"
        in output
    )
    lock = json.loads((bench.project / "model_configs" / f"{MODEL}.lock.json").read_text())
    released = lock["environments"]["local"]
    assert released["weights"]["source"] == CHECKPOINT
    assert released["compiled"]["target"] == "cpu"
    (job,) = bench.client("sagemaker").list_training_jobs()["TrainingJobSummaries"]
    assert released["compiled"]["source"] == f"training job {job['TrainingJobName']}"
    assert job["TrainingJobStatus"] == "Completed"
    bench.deploy(MODEL)
    try:
        response = bench.client("sagemaker-runtime").invoke_endpoint(
            EndpointName=ENDPOINT,
            ContentType="application/json",
            Body=json.dumps({"inputs": PROMPT, "parameters": {"max_new_tokens": NEW_TOKENS}}),
        )
        (answer,) = json.load(response["Body"])
        assert answer["generated_text"] == _expected(bench.project / CHECKPOINT)
    finally:
        bench.destroy_from(LATEST, MODEL)
    assert bench.serving_processes() == []
    bench.must("slipway", "leftovers", MODEL)


def test_a_checkpoint_that_cannot_be_compiled_is_told_in_the_programs_words(
    bench: Workbench,
) -> None:
    config = bench.project / CHECKPOINT / "config.json"
    before = config.read_text("utf-8")
    config.write_text(before.replace('"gpt2"', '"bert"'), "utf-8")
    try:
        report = bench.fails("slipway", "publish", MODEL)
    finally:
        config.write_text(before, "utf-8")
    assert "failed: AlgorithmError: " in report
    assert 'has model_type "bert": this container compiles gpt2 only' in report
    assert ", exit code: 1; the end of its log:" in report
