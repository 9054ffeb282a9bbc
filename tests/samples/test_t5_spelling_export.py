"""The committed graphs of the spelling sample compute what its checkpoint computes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.groups import load

if TYPE_CHECKING:
    from transformers import T5ForConditionalGeneration

torch = load("torch", group="torch")
transformers = load("transformers", group="torch")
load("onnxscript", group="torch")

# After the skips: it needs PyTorch.
from containers.tensorrt.export.parity import check_t5_graphs  # noqa: E402
from containers.triton.decoding import answers  # noqa: E402
from containers.triton.model_directory import read_config  # noqa: E402
from containers.triton.onnx_session import OnnxSequenceSession  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    # transformers and torch deprecate each other's and their own names in every release.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

MODEL = Path(__file__).parents[2] / "samples" / "t5-spelling" / "model"
TEXTS = ["bukcet", "scurity group", "amazon ec2 instnace", "configuraton", "if", "Polcy"]
NEW_TOKENS = 30


@pytest.fixture(scope="module")
def model() -> T5ForConditionalGeneration:
    return transformers.T5ForConditionalGeneration.from_pretrained(
        MODEL, dtype=torch.float32
    ).eval()


@pytest.fixture(scope="module")
def tokenizer() -> transformers.PreTrainedTokenizerBase:
    return transformers.AutoTokenizer.from_pretrained(MODEL)


def test_graphs_agree_with_the_checkpoint(
    model: T5ForConditionalGeneration, tokenizer: transformers.PreTrainedTokenizerBase
) -> None:
    checked = check_t5_graphs(
        MODEL / "encoder.onnx",
        MODEL / "decoder.onnx",
        model,
        tokenizer(TEXTS)["input_ids"],
        new_tokens=NEW_TOKENS,
    )
    assert checked.prompts == len(TEXTS)
    assert checked.ties == 0
    assert checked.largest_logit_difference < 1e-3


def test_texts_equal_those_of_generate_under_padding(
    model: T5ForConditionalGeneration, tokenizer: transformers.PreTrainedTokenizerBase
) -> None:
    given = tokenizer(TEXTS, padding=True, return_tensors="pt")
    generated = model.generate(**given, do_sample=False, max_new_tokens=NEW_TOKENS)
    expected = tokenizer.batch_decode(generated, skip_special_tokens=True)
    config = read_config(MODEL)
    found = answers(
        OnnxSequenceSession(MODEL, threads=1),
        [tuple(ids) for ids in tokenizer(TEXTS)["input_ids"]],
        max_new_tokens=NEW_TOKENS,
        start_token_id=config.start_token_id,
        end_token_ids=config.end_token_ids,
    )
    assert tokenizer.batch_decode([list(tokens) for tokens in found]) == expected
    assert expected[0] == "bucket"
