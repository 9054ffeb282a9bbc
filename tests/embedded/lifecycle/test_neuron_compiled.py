"""A BERT checkpoint, compiled by a training job when it is published, then deployed."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from containers.encoders.batches import batch_arrays
from containers.encoders.tasks.question_answering import QuestionAnswering
from containers.encoders.tasks.task import TaskSetting
from containers.encoders.tokenization import TextTokenizer
from tests.embedded.lifecycle.releases import deployed, publish, refusal, release_bench
from tests.support.groups import load
from tests.support.workbench import Workbench

torch = load("torch", group="torch")
transformers = load("transformers", group="torch")

pytestmark = [pytest.mark.cdk, pytest.mark.torch, pytest.mark.timeout(900)]

MODEL = "bert-qa-throughput"
# Where the shipped config has it.
CHECKPOINT = "build/bert-qa"
TOKENS = 128
BODY = {
    "inputs": {
        "question": "Which region is search-qa in?",
        "context": "ml.inf1.6xlarge has 24 vCPUs. search-qa is in eu-west-1.",
    }
}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """An account with a random BERT that has the sample's words."""

    def prepare(bench: Workbench) -> None:
        _write_checkpoint(bench.project / CHECKPOINT, bench.project / "samples/bert-qa/model")
        config = bench.config(MODEL)
        text = config.read_text("utf-8")
        assert text.count("  sequence_length: 128\n") == 1
        longer = "  sequence_length: 128\n  sequence_lengths: [64, 128]\n"
        config.write_text(text.replace("  sequence_length: 128\n", longer), "utf-8")

    with release_bench(tmp_path_factory.mktemp("neuron-compiled"), prepare) as bench:
        yield bench


def _write_checkpoint(directory: Path, sample: Path) -> None:
    torch.manual_seed(5)
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
    directory.parent.mkdir(exist_ok=True)
    transformers.BertForQuestionAnswering(config).save_pretrained(directory)
    shutil.copyfile(sample / "tokenizer.json", directory / "tokenizer.json")


def _expected(checkpoint: Path) -> Any:
    """What the model answers when transformers computes it, without padding."""
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
    logits = {
        "start_logits": output.start_logits[0].numpy(),
        "end_logits": output.end_logits[0].numpy(),
    }
    return json.loads(task.render([task.decode(value, logits)]))


def test_published_compiled_deployed_invoked_and_destroyed(bench):
    released, job = publish(bench, MODEL)
    assert released["weights"]["source"] == CHECKPOINT
    assert (released["compiled"]["target"], released["compiled"]["compiler"]) == ("cpu", "onnx")
    assert job["HyperParameters"] == {
        "batch_size": "6",
        "dtype": "fp32",
        "pipeline_cores": "1",
        "sequence_lengths": "64,128",
        "target": "cpu",
        "task": "question-answering",
    }
    assert job["ResourceConfig"]["InstanceType"] == "ml.c5.4xlarge"
    with deployed(bench, MODEL) as ask:
        answer = ask(BODY)
        expected = _expected(bench.project / CHECKPOINT)
        assert answer.pop("score") == pytest.approx(expected.pop("score"), rel=1e-3)
        assert answer == expected


def test_a_checkpoint_that_cannot_be_compiled_is_told_in_the_programs_words(bench):
    config = bench.project / CHECKPOINT / "config.json"
    report = refusal(bench, MODEL, config, "BertForQuestionAnswering", "BertForMaskedLM")
    assert (
        'has architectures ["BertForMaskedLM"], and question-answering needs '
        "BertForQuestionAnswering" in report
    )
