"""The requests of containers/lmi and of containers/tensorrt are one language."""

import json
import re

import pytest

from containers.lmi.handler import slipway_requests as ours
from containers.serving.errors import InvalidRequestError
from containers.serving.json_requests import parse_json_object
from containers.tensorrt.parameters import RequestLimits
from containers.tensorrt.requests import GenerationRequests
from containers.tensorrt.settings import GenerationSettings
from tests.containers.lmi.bad_bodies import REFUSED_ALIKE
from tests.support.messages import message_of

THEIRS = GenerationRequests(RequestLimits(GenerationSettings(max_new_tokens=42)))
LIMITS = {"max_new_tokens": 42, "max_inputs": 3, "max_top_k": 1_000_000}


def theirs(body):
    return THEIRS.read(parse_json_object(body))


@pytest.mark.parametrize("body", REFUSED_ALIKE, ids=lambda body: repr(body[:70]))
def test_what_the_other_container_refuses_is_refused_in_the_same_words(body):
    message = message_of(ours.InvalidRequestError, ours.parse_generation_request, body, **LIMITS)
    expected = message_of(InvalidRequestError, theirs, body)
    # The least temperature is another one, and is said to be; and answers are not streamed.
    assert message.replace("0.01 to", "0.001 to") == expected.replace(", stream.", ".")


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"max_new_tokens": 42, "return_full_text": True},
        {"do_sample": True},
        {"do_sample": True, "temperature": 2, "top_k": 1, "top_p": 1, "seed": 2**63 - 1},
    ],
)
@pytest.mark.parametrize("inputs", ["text", ["text"], ["a", "\u00e9\n"]])
def test_what_both_take_means_the_same(inputs, parameters):
    body = json.dumps({"inputs": inputs, "parameters": parameters}).encode()
    request = ours.parse_generation_request(body, **LIMITS)
    expected = theirs(body)
    asked = expected.parameters
    assert request.texts == expected.inputs.values
    assert request.max_new_tokens == asked.max_new_tokens
    assert request.return_full_text == asked.return_full_text
    assert (request.sampling is None) == (asked.sampling is None)
    if request.sampling and asked.sampling:
        for name in ("temperature", "top_k", "top_p", "seed"):
            assert getattr(request.sampling, name) == getattr(asked.sampling, name)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            {"inputs": "a", "parameters": {"max_new_token": 4}},
            "Unknown parameter 'max_new_token' (did you mean max_new_tokens?); allowed: "
            "max_new_tokens, do_sample, temperature, top_k, top_p, seed, repetition_penalty, "
            "return_full_text.",
        ),
        (
            {"inputs": "a", "stream": True},
            "Unknown field 'stream'; allowed: inputs, parameters.",
        ),
        ({"inputs": ["a"] * 4}, "The request holds 4 inputs; the limit is 3."),
        *(
            (
                {"inputs": "a", "parameters": {"repetition_penalty": penalty}},
                f"repetition_penalty={penalty} is not within above 0 to 10.",
            )
            for penalty in (0, 10.5)
        ),
        (
            {"inputs": "a", "parameters": {"do_sample": True, "temperature": 0.005}},
            "temperature=0.005 is not within 0.01 to 100.",
        ),
    ],
)
def test_what_is_only_here(document, message):
    with pytest.raises(ours.InvalidRequestError, match=f"^{re.escape(message)}$"):
        ours.parse_generation_request(json.dumps(document).encode(), **LIMITS)


def test_the_penalty_is_read_and_is_none_by_default():
    document = {"inputs": "a"}
    plain = ours.parse_generation_request(json.dumps(document).encode(), **LIMITS)
    document["parameters"] = {"repetition_penalty": 2}
    penal = ours.parse_generation_request(json.dumps(document).encode(), **LIMITS)
    assert (plain.repetition_penalty, penal.repetition_penalty) == (1.0, 2.0)
