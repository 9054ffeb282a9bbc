"""Real checkpoints become model directories that the real server serves."""

import importlib.metadata
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.support.groups import load

torch = load("torch", group="torch")
transformers = load("transformers", group="torch")
load("onnxscript", group="torch")
load("safetensors.torch", group="torch")

import tokenizers  # noqa: E402  (after the skips: without the extra, nothing below is needed)

from tests.containers.tensorrt.compile.jobs import SAMPLE, keep_one_layer  # noqa: E402
from tests.support.compile_jobs import ROOT, Job, until_gone  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    # transformers and torch deprecate each other's and their own names in every release.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

NEW_TOKENS = 10
PROMPTS = ("Specifies the name of", "The", "Amazon S3 bucket policy that is used for")


def environment(**variables: str) -> dict[str, str]:
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("SLIPWAY")
    }
    return inherited | {"SAGEMAKER_BIND_TO_PORT": "0", **variables}


def served(model_dir: Path, prompts: tuple[str, ...], new_tokens: int) -> list[str]:
    """The answers of the container's server, all asked for in one request."""
    process = subprocess.Popen(
        [sys.executable, "-m", "containers.tensorrt", "serve"],
        cwd=ROOT,
        env=environment(SM_MODEL_DIR=str(model_dir)),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        port = 0
        for line in process.stdout:
            fields = json.loads(line)
            port = fields.get("port", port)
            if fields["event"] == "model_loaded":
                break
        else:
            raise AssertionError("the server ended before it was ready")
        response = httpx.post(
            f"http://127.0.0.1:{port}/invocations",
            json={"inputs": list(prompts), "parameters": {"max_new_tokens": new_tokens}},
            timeout=60,
            trust_env=False,
        )
        assert response.status_code == 200, response.text
        return [answer["generated_text"] for answer in response.json()]
    finally:
        process.kill()
        process.communicate()


def generated(checkpoint: Path, prompts: tuple[str, ...], new_tokens: int) -> list[str]:
    """The same by transformers' generate, prompt by prompt."""
    model = transformers.GPT2LMHeadModel.from_pretrained(str(checkpoint), local_files_only=True)
    tokenizer = tokenizers.Tokenizer.from_file(str(checkpoint / "tokenizer.json"))
    texts = []
    for prompt in prompts:
        ids = torch.tensor([tokenizer.encode(prompt).ids])
        output = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            max_new_tokens=new_tokens,
            pad_token_id=0,
        )
        texts.append(tokenizer.decode(output[0, ids.shape[1] :].tolist()))
    return texts


class TestAsSageMakerRunsIt:
    def test_compiled_checkpoint_is_served(self, job: Job) -> None:
        assert job.run() == 0
        assert job.model_files == [
            "config.json",
            "generation_config.json",
            "model.onnx",
            "tokenizer.json",
            "tokenizer_config.json",
        ]
        for name in (name for name in job.model_files if name.endswith(".json")):
            assert (job.model / name).read_bytes() == (SAMPLE / name).read_bytes()
        assert list(job.output.iterdir()) == []

        assert served(job.model, PROMPTS, NEW_TOKENS) == generated(SAMPLE, PROMPTS, NEW_TOKENS)

        weights_bytes = (SAMPLE / "model.safetensors").stat().st_size
        assert job.named("compile_started")[0]["checkpoint_bytes"] == weights_bytes
        stages = ["import_packages", "load_checkpoint", "write_configs", "export_graph"]
        finished = job.named("stage_finished")
        assert [line["stage"] for line in finished] == [*stages, "verify_graph"]
        assert all(line["duration_seconds"] >= 0 for line in finished)
        assert finished[0]["versions"]["torch"] == importlib.metadata.version("torch")
        # The sample's weights are float16, the graph's float32.
        assert finished[3]["bytes"]["model.onnx"] > 2 * weights_bytes
        # Three prompts, each alone and all in a batch.
        assert finished[4]["tokens_compared"] == 24
        [end] = job.named("compile_finished")
        assert end["files"]["model.onnx"] == finished[3]["bytes"]["model.onnx"]
        assert end["peak_memory_bytes"] > weights_bytes
        assert not [line for line in job.events if line["level"] != "INFO"]

    @pytest.mark.parametrize(
        "stage", [pytest.param("load_checkpoint", marks=pytest.mark.size("deep")), "export_graph"]
    )
    def test_killed_in_a_stage(self, job: Job, stage: str) -> None:
        keep_one_layer(job.weights)
        process = job.start()
        worker = job.until("compile_started")["worker_process_id"]
        job.until("stage_started", stage=stage)
        process.kill()
        process.wait()
        until_gone(worker)
        [scratch] = job.model.iterdir()
        assert scratch.name.startswith(".compile-")

    def test_stopped_in_a_stage(self, job: Job) -> None:
        keep_one_layer(job.weights)
        process = job.start()
        worker = job.until("compile_started")["worker_process_id"]
        job.until("stage_started", stage="export_graph")
        process.send_signal(signal.SIGTERM)
        assert job.end() == 128 + signal.SIGTERM
        until_gone(worker)
        assert job.model_files == []
        assert not (job.output / "failure").exists()

    @pytest.mark.size("deep")  # below, an export in this process fails in the same way
    def test_full_volume(self, job: Job) -> None:
        """A limit on the size of a file stands in for the volume's end."""
        keep_one_layer(job.weights)
        largest_bytes = 1_000_000

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_bytes, largest_bytes))

        assert job.run(preexec_fn=limit) == 1
        assert job.failure == (
            f"no space left for {job.model} (File too large): give the job a larger volume"
        )
        assert job.model_files == []
