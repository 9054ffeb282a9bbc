import json
from collections.abc import Callable
from typing import Any

import pytest

from containers.neuron.requests import (
    Question,
    RequestLimits,
    parse_embedding_request,
    parse_question_request,
    parse_sequence_request,
    parse_token_request,
)
from containers.serving.errors import InvalidRequestError

LIMITS = RequestLimits(sequence_length=128, max_inputs=3, max_characters=40)
QUESTION = {"question": "Who?", "context": "Ada."}
Parse = Callable[[bytes, RequestLimits], Any]


def refusal(parse: Parse, document: object) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        parse(json.dumps(document).encode(), LIMITS)
    return str(caught.value)


def test_a_question_with_nothing_else_has_the_defaults_of_transformers() -> None:
    request = parse_question_request(json.dumps({"inputs": QUESTION}).encode(), LIMITS)
    assert request.questions == (Question("Who?", "Ada."),)
    assert not request.is_list
    assert (request.top_k, request.max_answer_tokens, request.max_window_tokens) == (1, 15, 128)
    assert (request.max_question_tokens, request.overlap_tokens) == (None, None)
    assert (request.handle_impossible_answer, request.align_to_words) == (False, True)


def test_every_parameter_of_a_question_is_read() -> None:
    body = {
        "inputs": [QUESTION, QUESTION],
        "parameters": {
            "top_k": 3,
            "max_answer_len": 7,
            "max_question_len": 9,
            "max_seq_len": 64,
            "doc_stride": 0,
            "handle_impossible_answer": True,
            "align_to_words": False,
        },
    }
    request = parse_question_request(json.dumps(body).encode(), LIMITS)
    assert len(request.questions) == 2
    assert request.is_list
    assert (request.top_k, request.max_answer_tokens, request.max_window_tokens) == (3, 7, 64)
    assert (request.max_question_tokens, request.overlap_tokens) == (9, 0)
    assert (request.handle_impossible_answer, request.align_to_words) == (True, False)


def test_all_problems_of_a_question_are_reported_at_once() -> None:
    message = refusal(
        parse_question_request,
        {
            "inputs": [{"question": "", "contxt": "x"}, "text"],
            "parameters": {"top_k": 0, "max_answer_len": "9", "topk": 1},
            "options": {},
        },
    )
    assert message == (
        "inputs[0].question is an empty string: it must hold some text. "
        "inputs[0].context is missing: a string. "
        "Unknown field 'contxt' in inputs[0] (did you mean context?); allowed: question, context. "
        "inputs[1] must be an object with question and context, not a string. "
        "top_k=0 is not within 1 to 100. "
        "max_answer_len must be a whole number, not '9'. "
        "Unknown field 'options'; allowed: inputs, parameters. "
        "Unknown parameter 'topk' (did you mean top_k?); allowed: top_k, max_answer_len, "
        "max_question_len, max_seq_len, doc_stride, handle_impossible_answer, align_to_words."
    )


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            {},
            "The field inputs is missing: an object with question and context, or an array of "
            "them.",
        ),
        (
            {"inputs": []},
            "inputs is an empty array: it must hold an object with question and context.",
        ),
        (
            {"inputs": [QUESTION] * 4},
            "inputs holds 4 texts: it must hold 1 to 3, the endpoint's max_queue_length.",
        ),
        (
            {"inputs": {"question": "Who?", "context": "x" * 41}},
            "inputs.context has 41 characters; the limit is 40.",
        ),
        (
            {"inputs": {"question": 1, "context": None}},
            "inputs.question must be a string, not a number. "
            "inputs.context must be a string, not null.",
        ),
        (
            {"inputs": QUESTION, "parameters": []},
            "parameters must be an object, not an array.",
        ),
        (
            {"inputs": QUESTION, "parameters": {"top_k": None, "doc_stride": 1e9}},
            "top_k must be a whole number, not null. doc_stride must be a whole number, not 1e+09.",
        ),
        (
            {"inputs": QUESTION, "parameters": {"align_to_words": 1}},
            "align_to_words must be true or false, not a number.",
        ),
    ],
)
def test_a_bad_question_names_its_field(document: object, message: str) -> None:
    assert refusal(parse_question_request, document) == message


def test_half_of_a_surrogate_pair_is_named() -> None:
    with pytest.raises(InvalidRequestError, match="half of a surrogate pair at character 1"):
        parse_sequence_request(rb'{"inputs": "a\ud83d"}', LIMITS)


def test_a_flood_of_problems_is_cut_off() -> None:
    limits = RequestLimits(sequence_length=128, max_inputs=10_000)
    with pytest.raises(InvalidRequestError) as caught:
        parse_sequence_request(json.dumps({"inputs": [0] * 5000}).encode(), limits)
    assert str(caught.value).startswith("inputs[0] must be a string, not a number. ")
    assert str(caught.value).endswith("And 4990 more problems.")


def test_a_text_to_be_classified() -> None:
    request = parse_sequence_request(b'{"inputs": "good"}', LIMITS)
    assert (request.texts, request.is_list, request.top_k) == (("good",), False, 1)
    assert (request.score_function, request.truncate) == (None, False)
    body = {
        "inputs": ["a", "b"],
        "parameters": {"top_k": 2, "function_to_apply": "sigmoid", "truncation": True},
    }
    request = parse_sequence_request(json.dumps(body).encode(), LIMITS)
    assert (request.texts, request.is_list, request.top_k) == (("a", "b"), True, 2)
    assert (request.score_function, request.truncate) == ("sigmoid", True)


def test_an_unknown_score_function_is_refused_with_the_known_ones() -> None:
    message = refusal(
        parse_sequence_request, {"inputs": "a", "parameters": {"function_to_apply": "relu"}}
    )
    assert message == "function_to_apply must be one of softmax, sigmoid, none, not 'relu'."


def test_a_text_with_entities() -> None:
    request = parse_token_request(b'{"inputs": "Ada"}', LIMITS)
    assert (request.aggregation_strategy, request.ignore_labels) == ("simple", ("O",))
    assert request.overlap_tokens is None
    body = {
        "inputs": "Ada",
        "parameters": {"aggregation_strategy": "max", "ignore_labels": [], "stride": 4},
    }
    request = parse_token_request(json.dumps(body).encode(), LIMITS)
    assert (request.aggregation_strategy, request.ignore_labels) == ("max", ())
    assert request.overlap_tokens == 4


def test_labels_to_ignore_must_be_texts() -> None:
    message = refusal(
        parse_token_request, {"inputs": "a", "parameters": {"ignore_labels": ["O", 1]}}
    )
    assert message == "ignore_labels must be an array of strings."


def test_a_text_to_be_embedded_has_its_options_beside_it() -> None:
    request = parse_embedding_request(b'{"inputs": "a", "truncate": true}', LIMITS)
    assert (request.texts, request.normalize, request.truncate) == (("a",), None, True)
    request = parse_embedding_request(b'{"inputs": ["a"], "normalize": false}', LIMITS)
    assert (request.is_list, request.normalize) == (True, False)
    message = refusal(parse_embedding_request, {"inputs": "a", "parameters": {}})
    assert message == "Unknown field 'parameters'; allowed: inputs, normalize, truncate."


@pytest.mark.parametrize(
    "parse",
    [parse_question_request, parse_sequence_request, parse_token_request, parse_embedding_request],
)
@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b'{"inputs": "a", "inputs": "b"}'])
def test_what_is_no_json_object_is_refused_by_every_task(parse: Parse, body: bytes) -> None:
    with pytest.raises(InvalidRequestError, match="The body"):
        parse(body, LIMITS)
