import json

import pytest

from containers.encoders.requests import (
    EmbeddingRequest,
    Question,
    QuestionParameters,
    QuestionRequest,
    RequestLimits,
    SequenceParameters,
    SequenceRequest,
    TokenParameters,
    TokenRequest,
)
from containers.serving.errors import InvalidRequestError
from containers.serving.objects import Inputs, request_description

LIMITS = RequestLimits(sequence_length=128, max_inputs=3, max_characters=40)
QUESTION = {"question": "Who?", "context": "Ada."}


def parse(request, document, limits=LIMITS):
    return request_description(request, limits).parse(json.dumps(document).encode())


def refusal(request, document, limits=LIMITS):
    with pytest.raises(InvalidRequestError) as caught:
        parse(request, document, limits)
    return str(caught.value)


def test_a_question_with_nothing_else_has_the_defaults_of_transformers():
    request = parse(QuestionRequest, {"inputs": QUESTION})
    assert request.inputs == Inputs((Question("Who?", "Ada."),), is_list=False)
    assert request.parameters == QuestionParameters(
        top_k=1,
        max_answer_len=15,
        max_question_len=None,
        max_seq_len=128,
        doc_stride=None,
        handle_impossible_answer=False,
        align_to_words=True,
    )


def test_every_parameter_of_a_question_is_read():
    body = {
        "inputs": [QUESTION] * LIMITS.max_inputs,
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
    request = parse(QuestionRequest, body)
    assert request.inputs == Inputs((Question(**QUESTION),) * 3, is_list=True)
    assert request.parameters._asdict() == body["parameters"]


def test_all_problems_of_a_question_are_reported_at_once():
    message = refusal(
        QuestionRequest,
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
        "max_answer_len must be a whole number, not a string. "
        "Unknown parameter 'topk' (did you mean top_k?); allowed: top_k, max_answer_len, "
        "max_question_len, max_seq_len, doc_stride, handle_impossible_answer, align_to_words. "
        "Unknown field 'options'; allowed: inputs, parameters."
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
            {"inputs": QUESTION, "parameters": []},
            "parameters must be an object, not an array.",
        ),
        (
            {
                "inputs": {"question": 1, "context": "x" * 41},
                "parameters": {"top_k": None, "doc_stride": 1e9, "align_to_words": 1},
            },
            "inputs.question must be a string, not a number. "
            "inputs.context has 41 characters; the limit is 40. "
            "top_k must be a whole number, not null. doc_stride must be a whole number, not 1e+09. "
            "align_to_words must be true or false, not a number.",
        ),
    ],
)
def test_a_bad_question_names_its_field(document, message):
    assert refusal(QuestionRequest, document) == message


def test_half_of_a_surrogate_pair_is_named():
    with pytest.raises(InvalidRequestError, match="half of a surrogate pair at character 1"):
        request_description(SequenceRequest, LIMITS).parse(rb'{"inputs": "a\ud83d"}')


def test_a_flood_of_problems_is_cut_off():
    limits = RequestLimits(sequence_length=128, max_inputs=10_000)
    message = refusal(SequenceRequest, {"inputs": [0] * 5000}, limits)
    assert message.startswith("inputs[0] must be a string, not a number. ")
    assert message.endswith("And 4990 more problems.")


def test_a_text_to_be_classified():
    request = parse(SequenceRequest, {"inputs": "good"})
    assert request == (Inputs(("good",), is_list=False), SequenceParameters(1, None, False))
    body = {
        "inputs": ["a", "b"],
        "parameters": {"top_k": 2, "function_to_apply": "sigmoid", "truncation": True},
    }
    request = parse(SequenceRequest, body)
    assert request == (Inputs(("a", "b"), is_list=True), SequenceParameters(2, "sigmoid", True))


def test_an_unknown_score_function_is_refused_with_the_known_ones():
    message = refusal(SequenceRequest, {"inputs": "a", "parameters": {"function_to_apply": "relu"}})
    assert message == "function_to_apply must be one of softmax, sigmoid, none, not 'relu'."


def test_a_text_with_entities():
    request = parse(TokenRequest, {"inputs": "Ada"})
    assert request.parameters == TokenParameters("simple", ("O",), stride=None)
    body = {
        "inputs": "Ada",
        "parameters": {"aggregation_strategy": "max", "ignore_labels": [], "stride": 4},
    }
    request = parse(TokenRequest, body)
    assert request.parameters == TokenParameters("max", (), stride=4)


def test_labels_to_ignore_must_be_texts():
    message = refusal(TokenRequest, {"inputs": "a", "parameters": {"ignore_labels": ["O", 1]}})
    assert message == "ignore_labels[1] must be a string, not a number."


def test_a_text_to_be_embedded_has_its_options_beside_it():
    request = parse(EmbeddingRequest, {"inputs": "a", "truncate": True})
    assert request == (Inputs(("a",), is_list=False), None, True)
    request = parse(EmbeddingRequest, {"inputs": ["a"], "normalize": False})
    assert request == (Inputs(("a",), is_list=True), False, False)
    message = refusal(EmbeddingRequest, {"inputs": "a", "parameters": {}})
    assert message == "Unknown field 'parameters'; allowed: inputs, normalize, truncate."


@pytest.mark.parametrize(
    "request_type",
    [QuestionRequest, SequenceRequest, TokenRequest, EmbeddingRequest],
)
@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b'{"inputs": "a", "inputs": "b"}'])
def test_what_is_no_json_object_is_refused_by_every_task(request_type, body):
    with pytest.raises(InvalidRequestError, match="The body"):
        request_description(request_type, LIMITS).parse(body)
