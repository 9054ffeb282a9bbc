"""Prompts that are far too long cost nothing, and no prompt is refused that fits."""

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies
from tokenizers import Tokenizer

from containers.serving.errors import InvalidRequestError
from containers.tensorrt.tokenization import PromptTokenizer, longest_token_bytes

PATH = Path("samples/gpt2-autocomplete/model/tokenizer.json")
LONGEST_BYTES = 16


@pytest.fixture(scope="module")
def tokenizer():
    return PromptTokenizer.read(PATH)


@pytest.fixture
def document():
    return json.loads(PATH.read_bytes())


def refused(tokenizer, *texts, max_tokens=10):
    with pytest.raises(InvalidRequestError) as caught:
        tokenizer.encode(texts, max_tokens=max_tokens)
    return str(caught.value)


def test_a_text_that_cannot_fit_is_refused_by_its_length(tokenizer):
    text = "a" * 6_000_000
    tracemalloc.start()
    try:
        message = refused(tokenizer, "fits", text)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert message == "Input 1 has at least 375000 tokens; the limit is 10."
    assert peak_bytes < 2 * len(text)


def test_one_that_may_fit_is_counted(tokenizer):
    text = "a" * (10 * LONGEST_BYTES)
    count = len(Tokenizer.from_file(str(PATH)).encode(text).ids)
    assert refused(tokenizer, "a", text) == f"Input 1 has {count} tokens; the limit is 10."


def test_the_first_of_many_texts_that_is_too_long_ends_it(tokenizer):
    # 4 million tokens, were they all encoded.
    assert refused(tokenizer, *["x " * 75] * 10_000).startswith("Input 0 has ")


def test_texts_keep_their_order(tokenizer):
    plain = Tokenizer.from_file(str(PATH))
    texts = [f"The name {index} of" * (index % 5 + 1) for index in range(1000)]
    texts[500] = "long " * 100_000
    encoded = tokenizer.encode(texts, max_tokens=1_000_000)
    assert [list(each) for each in encoded] == [plain.encode(text).ids for text in texts]


@settings(deadline=None)
@given(text=strategies.text(min_size=1, max_size=200))
def test_the_bound_never_exceeds_the_count(tokenizer, text):
    [token_ids] = tokenizer.encode([text], max_tokens=10_000)
    assert tokenizer._least_tokens(text) <= len(token_ids)


def test_a_text_without_tokens_is_refused(document):
    document["normalizer"] = {"type": "Replace", "pattern": {"String": "a"}, "content": ""}
    tokenizer = PromptTokenizer(Tokenizer.from_str(json.dumps(document)))
    assert refused(tokenizer, "b", "aaa") == "Input 1 holds no token that the model knows."
    # And its length says nothing.
    assert tokenizer.encode(["a" * 1_000 + "b"], max_tokens=10) == tokenizer.encode(
        ["b"], max_tokens=10
    )


def test_the_longest_token_is_known_only_where_no_text_can_vanish(document):
    assert longest_token_bytes(document) == LONGEST_BYTES
    long_token = {"content": "<é" + "x" * 30 + ">", "lstrip": False, "rstrip": False}
    assert longest_token_bytes(document | {"added_tokens": [long_token]}) == 34
    for change in (
        {"normalizer": {"type": "NFC"}},
        {"pre_tokenizer": {"type": "Whitespace"}},
        {"pre_tokenizer": None},
        {"model": document["model"] | {"type": "Unigram"}},
        {"model": document["model"] | {"vocab": {"a": 0}}},
        {"added_tokens": [long_token | {"rstrip": True}]},
    ):
        assert longest_token_bytes(document | change) is None
