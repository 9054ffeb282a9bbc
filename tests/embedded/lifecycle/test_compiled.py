"""Checkpoints that training jobs compile when they are published; then the models are deployed."""

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from containers.encoders.batches import batch_arrays
from containers.encoders.tasks import QuestionAnswering, TaskSetting
from containers.encoders.tokenization import TextTokenizer
from tests.containers.tensorrt.t5_models import VOCABULARY, random_t5
from tests.support.groups import LeftOutError, load, need
from tests.support.workbench import LATEST, MODEL, Workbench

torch = load("torch", group="torch")
transformers = load("transformers", group="torch")

pytestmark = [pytest.mark.cdk, pytest.mark.torch, pytest.mark.timeout(900)]

BERT, T5 = "bert-qa-throughput", "t5-spelling"
PROMPT = "The Amazon Resource Name (ARN)"
NEW_TOKENS = 8
TOKENS = 128
BODY = {
    "inputs": {
        "question": "Which region is search-qa in?",
        "context": "ml.inf1.6xlarge has 24 vCPUs. search-qa is in eu-west-1.",
    }
}
TEXTS = ["w7 w10 w19", "w5", "w44 w3 w8 w20 w6"]
END = "</s>"


def _write_gpt2(bench: Workbench, checkpoint: Path) -> None:
    """The sample's checkpoint: the published case's own repository is too large to fetch."""
    sample = bench.project / "samples" / MODEL / "model"
    shutil.copytree(sample, checkpoint, ignore=shutil.ignore_patterns("*.onnx"))
    config = bench.config(MODEL)
    before, _, after = config.read_text("utf-8").partition("    source: hub\n")
    rest = after.splitlines(keepends=True)
    while rest[0].startswith("    "):
        del rest[0]
    place = f"    source: path\n    path: {checkpoint.relative_to(bench.project)}\n"
    config.write_text(before + place + "".join(rest), "utf-8")


def _expected_of_gpt2(checkpoint: Path) -> Any:
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
    model = transformers.GPT2LMHeadModel.from_pretrained(checkpoint).eval()
    inputs = tokenizer(PROMPT, return_tensors="pt")
    with torch.inference_mode():
        (tokens,) = model.generate(
            **inputs, max_new_tokens=NEW_TOKENS, do_sample=False,
            pad_token_id=model.config.eos_token_id,
        )  # fmt: skip
    return tokenizer.decode(tokens[inputs["input_ids"].shape[1] :], skip_special_tokens=True)


def _write_bert(bench: Workbench, checkpoint: Path) -> None:
    """A random BERT that has the sample's words."""
    torch.manual_seed(5)
    sample = bench.project / "samples/bert-qa/model"
    sizes = json.loads((sample / "config.json").read_text())
    config = transformers.BertConfig(
        vocab_size=sizes["vocab_size"],
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=TOKENS,
        pad_token_id=sizes["pad_token_id"],
        # So that one answer is better than the others by more than rounding.
        initializer_range=0.5,
    )
    transformers.BertForQuestionAnswering(config).save_pretrained(checkpoint)
    shutil.copyfile(sample / "tokenizer.json", checkpoint / "tokenizer.json")
    line = "  sequence_length: 128\n"
    file = bench.config(BERT)
    text = file.read_text("utf-8")
    assert text.count(line) == 1
    file.write_text(text.replace(line, f"{line}  sequence_lengths: [64, 128]\n"), "utf-8")


def _expected_of_bert(checkpoint: Path) -> Any:
    """The answer without padding; its score differs by rounding."""
    model = transformers.BertForQuestionAnswering.from_pretrained(checkpoint).eval()
    task = QuestionAnswering(
        TaskSetting(
            tokenizer=TextTokenizer.read(checkpoint / "tokenizer.json"),
            buckets=(TOKENS,),
            max_inputs=8,
            max_characters=10_000,
        )
    )
    (value,) = task.parse(json.dumps(BODY).encode())
    arrays = batch_arrays([value.row], bucket=len(value.row), batch_size=None, pad_token_id=0)
    with torch.inference_mode():
        output = model(**{name: torch.from_numpy(array) for name, array in arrays.items()})
    logits = {name: output[name][0].numpy() for name in ("start_logits", "end_logits")}
    answer = json.loads(task.render([task.decode(value, logits)]))
    return answer | {"score": pytest.approx(answer["score"], rel=1e-3)}


def _write_t5(_: Workbench, checkpoint: Path) -> None:
    random_t5(seed=3, gated=False, encoder_layers=2, decoder_layers=2).save_pretrained(checkpoint)
    words = {"<pad>": 0, END: 1, **{f"w{index}": index for index in range(2, VOCABULARY)}}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<pad>"))  # noqa: S106  (no secret)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {END}", special_tokens=[(END, words[END])]
    )
    tokenizer.save(str(checkpoint / "tokenizer.json"))


def _expected_of_t5(checkpoint: Path) -> Any:
    model = transformers.T5ForConditionalGeneration.from_pretrained(checkpoint).eval()
    tokenizer = Tokenizer.from_file(str(checkpoint / "tokenizer.json"))
    answers = []
    for text in TEXTS:
        tokens = torch.tensor([tokenizer.encode(text).ids])
        made = model.generate(tokens, max_new_tokens=32, do_sample=False, num_beams=1)
        # Without the token that begins it, and those that end it.
        answers.append(tokenizer.decode([token for token in made[0].tolist() if token > 1]))
    return answers


# Where the configs have the weights.
CHECKPOINTS = {
    MODEL: ("build/checkpoint", _write_gpt2),
    BERT: ("build/bert-qa", _write_bert),
    T5: ("build/t5-spelling", _write_t5),
}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """An account that deploys releases, in which each model is published and deployed."""
    names = [MODEL, BERT]
    with contextlib.suppress(LeftOutError):
        need("triton")
        names.append(T5)
    with Workbench(tmp_path_factory.mktemp("compiled")) as bench:
        environments = bench.project / "environments.yaml"
        text = environments.read_text("utf-8")
        assert text.count("artifacts: sample") == 1
        environments.write_text(text.replace("artifacts: sample", "artifacts: release"), "utf-8")
        bench.bootstrap()
        bench.deploy_foundation()
        for name in names:
            path, write = CHECKPOINTS[name]
            write(bench, bench.project / path)
            assert "the release was never published" in bench.fails("slipway", "plan", name)
            output = bench.must("slipway", "publish", name)
            assert "Compiled for cpu, as the embedded AWS has no accelerator, by" in output
        bench.deploy(*names)
        yield bench
        bench.destroy_from(LATEST, *names)
        assert bench.serving_processes() == []
        for name in names:
            bench.must("slipway", "leftovers", name)


def published(bench: Workbench, model: str) -> dict[str, Any]:
    """Checks what the lock has of a model; returns its training job."""
    lock = json.loads((bench.project / "model_configs" / f"{model}.lock.json").read_text())
    released = lock["environments"]["local"]
    sagemaker = bench.client("sagemaker")
    listed = sagemaker.list_training_jobs(NameContains=model, StatusEquals="Completed")
    (summary,) = listed["TrainingJobSummaries"]
    name = summary["TrainingJobName"]
    assert released["weights"]["source"] == CHECKPOINTS[model][0]
    compiled = [released["compiled"][each] for each in ("source", "target", "compiler")]
    assert compiled == [f"training job {name}", "cpu", "onnx"]
    return sagemaker.describe_training_job(TrainingJobName=name)


def test_gpt2_answers_as_transformers_does(bench):
    published(bench, MODEL)
    body = {"inputs": PROMPT, "parameters": {"max_new_tokens": NEW_TOKENS}}
    (answer,) = bench.ask(f"{MODEL}-local", body)
    assert answer["generated_text"] == _expected_of_gpt2(bench.project / CHECKPOINTS[MODEL][0])


def test_bert_answers_as_transformers_does(bench):
    job = published(bench, BERT)
    assert job["HyperParameters"] == {
        "batch_size": "6",
        "dtype": "fp32",
        "pipeline_cores": "1",
        "sequence_lengths": "64,128",
        "target": "cpu",
        "task": "question-answering",
    }
    assert job["ResourceConfig"]["InstanceType"] == "ml.c5.4xlarge"
    expected = _expected_of_bert(bench.project / CHECKPOINTS[BERT][0])
    assert bench.ask(f"{BERT}-local", BODY) == expected


@pytest.mark.triton
def test_t5_answers_as_transformers_does(bench):
    job = published(bench, T5)
    image = job["AlgorithmSpecification"]["TrainingImage"]
    assert image.partition("/")[2].startswith("slipway/triton:triton26.05-")
    assert job["HyperParameters"] == {
        "dtype": "fp32",
        "max_batch_size": "16",
        "max_input_tokens": "32",
        "max_new_tokens": "32",
        "target": "cpu",
    }
    tensor = {"name": "TEXT", "shape": [len(TEXTS), 1], "datatype": "BYTES", "data": TEXTS}
    (found,) = bench.ask(f"{T5}-local", {"inputs": [tensor]})["outputs"]
    assert found["data"] == _expected_of_t5(bench.project / CHECKPOINTS[T5][0])


@pytest.mark.parametrize(
    ("model", "old", "new", "message"),
    [
        (MODEL, '"gpt2"', '"bert"', 'has model_type "bert": this container compiles gpt2 only'),
        (
            BERT,
            "BertForQuestionAnswering",
            "BertForMaskedLM",
            'has architectures ["BertForMaskedLM"], and question-answering needs '
            "BertForQuestionAnswering",
        ),
    ],
)
def test_a_checkpoint_that_cannot_be_compiled_is_told_in_the_programs_words(
    bench, model, old, new, message
):
    config = bench.project / CHECKPOINTS[model][0] / "config.json"
    before = config.read_text("utf-8")
    assert old in before
    config.write_text(before.replace(old, new), "utf-8")
    report = bench.fails("slipway", "publish", model)
    assert "failed: AlgorithmError: " in report
    assert ", exit code: 1; the end of its log:" in report
    assert message in report
