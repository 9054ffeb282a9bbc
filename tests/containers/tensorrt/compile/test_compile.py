"""A real checkpoint becomes a model directory that the container serves."""

import importlib.metadata
import json
import signal

from tests.support.groups import TORCH_MARKS, load

torch = load("torch", group="torch")
transformers = load("transformers", group="torch")
load("onnxscript", group="torch")
load("safetensors.torch", group="torch")

import tokenizers  # noqa: E402  (after the skips: without the extra, nothing below is needed)

from containers.jobs.paths import JobPaths  # noqa: E402
from containers.tensorrt.compile.checkpoint import prepare  # noqa: E402
from containers.tensorrt.compile.worker import compile_checkpoint  # noqa: E402
from tests.containers.tensorrt.compile.jobs import keep_one_layer  # noqa: E402
from tests.containers.tensorrt.sample_model import answer, loaded  # noqa: E402
from tests.support.compile_jobs import until_gone  # noqa: E402
from tests.support.servers import captured_logs  # noqa: E402

pytestmark = [*TORCH_MARKS]

NEW_TOKENS = 10
PROMPTS = ("Specifies the name of", "The", "Amazon S3 bucket policy that is used for")


def generated(checkpoint, prompts, new_tokens):
    """What transformers' generate gives, prompt by prompt."""
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


def test_a_compiled_checkpoint_is_served(job):
    keep_one_layer(job.weights)
    assert job.run() == 0
    assert job.model_files == [
        "config.json",
        "generation_config.json",
        "model.onnx",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    for name in (name for name in job.model_files if name.endswith(".json")):
        assert (job.model / name).read_bytes() == (job.weights / name).read_bytes()
    assert list(job.output.iterdir()) == []

    body = {"inputs": list(PROMPTS), "parameters": {"max_new_tokens": NEW_TOKENS}}
    answers = [each["generated_text"] for each in answer(loaded(job.model), body)]
    assert answers == generated(job.weights, PROMPTS, NEW_TOKENS)

    weights_bytes = (job.weights / "model.safetensors").stat().st_size
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


def test_stopped_in_a_stage(job):
    keep_one_layer(job.weights)
    process = job.start()
    worker = job.until("compile_started")["worker_process_id"]
    job.until("stage_started", stage="export_graph")
    process.send_signal(signal.SIGTERM)
    assert job.end() == 128 + signal.SIGTERM
    until_gone(worker)
    assert job.model_files == []
    assert not (job.output / "failure").exists()


def test_int8_weights_are_measured_and_served(job):
    """In this process, which has torch already."""
    keep_one_layer(job.weights)
    job.set_hyperparameters(dtype="int8")
    paths, _ = JobPaths.read(job.directories)
    with captured_logs() as logs:
        compile_checkpoint(prepare(paths), None, job.model)
    assert {"accuracy.json", "model.onnx"} < set(job.model_files)
    (quantized,) = (each for each in logs.events("stage_finished") if "products" in each)
    assert quantized["products"] == 5  # of the layer, and the output head's
    accuracy = json.loads((job.model / "accuracy.json").read_text())
    assert accuracy["tokens"] == 480
    assert 0.9 * 480 < accuracy["equal_tokens"] <= 480
    assert 0 < accuracy["largest_logit_difference"] < 2
    # Of the one layer that is left, later tokens are nearly ties.
    body = {"inputs": list(PROMPTS), "parameters": {"max_new_tokens": 1}}
    answers = [each["generated_text"] for each in answer(loaded(job.model), body)]
    assert answers == generated(job.weights, PROMPTS, 1)
