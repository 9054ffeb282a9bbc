"""A T5 checkpoint, compiled by a training job when it is published, served by the real Triton."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from tests.containers.tensorrt.t5_models import VOCABULARY, random_t5
from tests.embedded.lifecycle.releases import deployed, publish, release_bench
from tests.support.groups import load
from tests.support.workbench import Workbench

torch = load("torch", group="torch")

pytestmark = [pytest.mark.cdk, pytest.mark.torch, pytest.mark.triton, pytest.mark.timeout(900)]

MODEL = "t5-spelling"
# Where the shipped config has it.
CHECKPOINT = "build/t5-spelling"
TEXTS = ["w7 w10 w19", "w5", "w44 w3 w8 w20 w6"]
NEW_TOKENS = 32
END = "</s>"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    with release_bench(
        tmp_path_factory.mktemp("triton-compiled"),
        lambda bench: _write_checkpoint(bench.project / CHECKPOINT),
    ) as bench:
        yield bench


def _write_checkpoint(directory: Path) -> None:
    model = random_t5(seed=3, gated=False, encoder_layers=2, decoder_layers=2)
    model.save_pretrained(directory)
    words = {"<pad>": 0, END: 1, **{f"w{index}": index for index in range(2, VOCABULARY)}}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<pad>"))  # noqa: S106  (no secret)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {END}", special_tokens=[(END, words[END])]
    )
    tokenizer.save(str(directory / "tokenizer.json"))


def _expected(checkpoint: Path) -> list[str]:
    """Returns what transformers answers to each text alone."""
    from transformers import T5ForConditionalGeneration

    model = T5ForConditionalGeneration.from_pretrained(checkpoint).eval()
    tokenizer = Tokenizer.from_file(str(checkpoint / "tokenizer.json"))
    answers = []
    for text in TEXTS:
        tokens = torch.tensor([tokenizer.encode(text).ids])
        made = model.generate(tokens, max_new_tokens=NEW_TOKENS, do_sample=False, num_beams=1)
        # Without the token that begins it, and those that end it.
        answers.append(tokenizer.decode([token for token in made[0].tolist() if token > 1]))
    return answers


def test_published_compiled_deployed_invoked_and_destroyed(bench):
    released, job = publish(bench, MODEL)
    assert (released["compiled"]["target"], released["compiled"]["compiler"]) == ("cpu", "onnx")
    image = job["AlgorithmSpecification"]["TrainingImage"]
    assert image.partition("/")[2].startswith("slipway/triton:triton26.05-")
    assert job["HyperParameters"] == {
        "dtype": "fp32",
        "max_batch_size": "16",
        "max_input_tokens": "32",
        "max_new_tokens": str(NEW_TOKENS),
        "target": "cpu",
    }
    with deployed(bench, MODEL) as ask:
        shape = [len(TEXTS), 1]
        tensor = {"name": "TEXT", "shape": shape, "datatype": "BYTES", "data": TEXTS}
        (found,) = ask({"inputs": [tensor]})["outputs"]
        assert found["data"] == _expected(bench.project / CHECKPOINT)
