"""A checkpoint without a graph, compiled by a training job when it is published, then deployed."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.embedded.lifecycle.releases import deployed, publish, refusal, release_bench
from tests.support.groups import load
from tests.support.workbench import MODEL, Workbench

torch = load("torch", group="torch")
load("transformers", group="torch")

pytestmark = [pytest.mark.cdk, pytest.mark.torch, pytest.mark.timeout(900)]

PROMPT = "The Amazon Resource Name (ARN)"
NEW_TOKENS = 8
# The published case's own repository is too large to fetch for a test.
CHECKPOINT = "build/checkpoint"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """An account with the sample's checkpoint as weights."""

    def prepare(bench: Workbench) -> None:
        sample = bench.project / "samples" / MODEL / "model"
        no_graph = shutil.ignore_patterns("*.onnx")
        shutil.copytree(sample, bench.project / CHECKPOINT, ignore=no_graph)
        _take_weights_from(bench.config(MODEL), CHECKPOINT)

    with release_bench(tmp_path_factory.mktemp("compiled"), prepare) as bench:
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
    return tokenizer.decode(tokens[inputs["input_ids"].shape[1] :], skip_special_tokens=True)


def test_published_compiled_deployed_invoked_and_destroyed(bench):
    released, _ = publish(bench, MODEL)
    assert released["weights"]["source"] == CHECKPOINT
    assert released["compiled"]["target"] == "cpu"
    with deployed(bench, MODEL) as ask:
        (answer,) = ask({"inputs": PROMPT, "parameters": {"max_new_tokens": NEW_TOKENS}})
        assert answer["generated_text"] == _expected(bench.project / CHECKPOINT)


def test_a_checkpoint_that_cannot_be_compiled_is_told_in_the_programs_words(bench):
    config = bench.project / CHECKPOINT / "config.json"
    report = refusal(bench, MODEL, config, '"gpt2"', '"bert"')
    assert 'has model_type "bert": this container compiles gpt2 only' in report
