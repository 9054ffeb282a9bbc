"""Parameters that are refused, in the words that the client reads."""

import pytest

from containers.serving.errors import InvalidRequestError
from containers.tensorrt.beam_search import Beams
from containers.tensorrt.parameters import RequestLimits
from containers.tensorrt.requests import GenerationRequests
from containers.tensorrt.sampling import Sampling
from containers.tensorrt.settings import GenerationSettings

LIMIT = "the endpoint's max_batch_size"
REQUESTS = GenerationRequests(RequestLimits(GenerationSettings(max_new_tokens=42), 8))


def parse(parameters, inputs="text", **fields):
    document = {"inputs": inputs, "parameters": parameters, **fields}
    return REQUESTS.read(document)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"stop": "x"}, "stop must be an array of strings, not a string."),
        ({"stop": []}, "stop holds 0 texts: it must hold 1 to 16."),
        ({"stop": ["x"] * 17}, "stop holds 17 texts: it must hold 1 to 16."),
        ({"stop": ["x" * 1001]}, "stop[0] has 1001 characters: it must have 1 to 1000."),
        ({"stop": ["a\ud800"]}, "stop[0] holds half of a surrogate pair at character 1."),
        ({"num_beams": 0}, f"num_beams=0 is not within 1 to 8, {LIMIT}."),
        ({"num_beams": 2.5}, "num_beams must be a whole number, not 2.5."),
        (
            {"num_return_sequences": 9, "do_sample": True},
            f"num_return_sequences=9 is not within 1 to 8, {LIMIT}.",
        ),
        (
            {"num_return_sequences": 9, "num_beams": 2},
            f"num_return_sequences=9 is not within 1 to 8, {LIMIT}.",
        ),
        (
            {"num_return_sequences": 2},
            "num_return_sequences=2 and greedy decoding do not go together, which has one answer: "
            "set do_sample to true, or num_beams to 2 or more.",
        ),
        (
            {"num_beams": 2, "top_k": 3},
            "top_k would have no effect: num_beams=2 searches without chance; leave one of them "
            "out.",
        ),
        (
            {"length_penalty": 1.0, "early_stopping": True},
            "length_penalty, early_stopping would have no effect: set num_beams above 1 as well.",
        ),
        (
            {"num_beams": 2, "length_penalty": -10.5},
            "length_penalty=-10.5 is not within -10 to 10.",
        ),
        (
            {"num_beams": 2, "early_stopping": "always"},
            "early_stopping must be true, false or \"never\", not 'always'.",
        ),
        (
            {"num_beams": 2, "early_stopping": 1},
            'early_stopping must be true, false or "never", not a number.',
        ),
        ({"num_beam": 2}, "Unknown parameter 'num_beam' (did you mean num_beams?); allowed: "),
        # No problem follows from a value that is not known.
        ({"num_beams": 9, "length_penalty": 2.0}, f"num_beams=9 is not within 1 to 8, {LIMIT}."),
        ({"do_sample": 1, "top_k": 3}, "do_sample must be true or false, not a number."),
        (
            {"num_return_sequences": 2, "do_sample": "true"},
            "do_sample must be true or false, not a string.",
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_parameter_is_refused_with_its_remedy(parameters, message):
    with pytest.raises(InvalidRequestError) as caught:
        parse(parameters)
    refusal = str(caught.value)
    assert refusal[: len(message)] == message if message.endswith(" ") else refusal == message


@pytest.mark.parametrize("sequences", [2, 4])
@pytest.mark.parametrize("parameters", [{}, {"do_sample": True}], ids=["beams", "completions"])
def test_the_sequences_of_a_request_fit_one_batch(parameters, sequences):
    name = "num_return_sequences" if parameters else "num_beams"
    asked = parameters | {name: sequences}
    most = 8 // sequences
    assert len(parse(asked, ["a"] * most).inputs.values) == most
    with pytest.raises(InvalidRequestError) as caught:
        parse(asked, ["a"] * (most + 1))
    assert str(caught.value) == (
        f"inputs holds {most + 1} texts of {sequences} sequences each (num_beams or "
        f"num_return_sequences), {8 + sequences} together; the endpoint computes at most 8 at a "
        f"time (max_batch_size): send at most {most}, or ask for fewer sequences."
    )


def test_texts_of_one_sequence_may_be_more_than_a_batch():
    assert len(parse({}, ["a"] * 20).inputs.values) == 20


def test_defaults_are_greedy_and_those_of_hugging_face():
    plain = parse({})
    asked = plain.parameters
    assert (asked.sampling, asked.beams, asked.sequences, asked.stop) == (None, None, 1, None)
    assert not plain.stream
    # One beam and one answer are what greedy decoding is.
    assert parse({"num_beams": 1, "num_return_sequences": 1}) == plain
    assert parse({"num_beams": 3}).parameters.beams == Beams(
        3, 1, length_penalty=1.0, early_stopping=False
    )


def test_what_is_asked_is_what_is_read():
    asked = {
        "num_beams": 3,
        "num_return_sequences": 2,
        "length_penalty": -2,
        "early_stopping": "never",
    }
    assert parse(asked).parameters.beams == Beams(3, 2, length_penalty=-2.0, early_stopping="never")
    sampled = parse({"do_sample": True, "num_return_sequences": 8, "stop": ["\n", "END"]})
    assert sampled.parameters.sampling == Sampling()
    assert (sampled.parameters.sequences, sampled.parameters.stop) == (8, ("\n", "END"))


def test_only_one_text_is_streamed():
    assert parse({}, ["a"], stream=True).stream
    assert not parse({}, ["a", "b"], stream=False).stream


@pytest.mark.parametrize(
    ("parameters", "fields", "messages"),
    [
        (
            {"max_new_tokens": 0, "do_sample": "yes", "stop": ["", 5], "topk": 1},
            {"inputs": ["a", "", 5], "stream": 1, "strem": True},
            [
                "inputs[1] is an empty string: it must hold some text.",
                "inputs[2] must be a string, not a number.",
                "max_new_tokens=0 is not within 1 to 42.",
                "do_sample must be true or false, not a string.",
                "stop[0] has 0 characters: it must have 1 to 1000.",
                "stop[1] must be a string, not a number.",
                "Unknown parameter 'topk' (did you mean top_k?); allowed: max_new_tokens, "
                "do_sample, temperature, top_k, top_p, seed, stop, num_return_sequences, "
                "num_beams, length_penalty, early_stopping, return_full_text.",
                "stream must be true or false, not a number.",
                "Unknown field 'strem' (did you mean stream?); allowed: inputs, parameters, "
                "stream.",
            ],
        ),
        (
            {"temperature": 101, "seed": 1},
            {"inputs": ["a", "b"], "stream": True},
            [
                "temperature=101 is not within 0.001 to 100.",
                "temperature, seed would have no effect: set do_sample to true as well.",
                "stream=true and inputs of 2 texts do not go together: send one text, or set "
                "stream to false.",
            ],
        ),
        (
            {"do_sample": True, "num_beams": 3, "num_return_sequences": 4, "stop": ["x"]},
            {"inputs": ["a"] * 3},
            [
                "do_sample=true and num_beams=3 do not go together: leave one of them out.",
                "stop and num_beams=3 do not go together: leave one of them out.",
                "num_return_sequences=4 exceeds num_beams=3: a search has one answer per beam; "
                "raise num_beams or ask for fewer.",
                "inputs holds 3 texts of 4 sequences each (num_beams or num_return_sequences), 12 "
                "together; the endpoint computes at most 8 at a time (max_batch_size): send at "
                "most 2, or ask for fewer sequences.",
            ],
        ),
        (
            {"inputs": 1, "num_beams": 2},
            {"inputs": ["a"] * 5},
            [
                "Unknown parameter 'inputs'; allowed: max_new_tokens, do_sample, temperature, "
                "top_k, top_p, seed, stop, num_return_sequences, num_beams, length_penalty, "
                "early_stopping, return_full_text.",
                "inputs holds 5 texts of 2 sequences each (num_beams or num_return_sequences), 10 "
                "together; the endpoint computes at most 8 at a time (max_batch_size): send at "
                "most 4, or ask for fewer sequences.",
            ],
        ),
        (
            {"num_beams": 3},
            {"inputs": "a", "stream": True},
            [
                "stream=true and 3 sequences (num_beams or num_return_sequences) do not go "
                "together: leave them out, or set stream to false.",
            ],
        ),
        (
            [],
            {"inputs": None},
            [
                "inputs must be a string or an array of strings, not null.",
                "parameters must be an object, not an array.",
            ],
        ),
    ],
)
def test_every_problem_is_reported_at_once(parameters, fields, messages):
    with pytest.raises(InvalidRequestError) as caught:
        parse(parameters, **fields)
    assert str(caught.value) == " ".join(messages)


def test_a_flood_of_problems_is_cut_off():
    document = {"inputs": "a", **{f"option {number}": 1 for number in range(5000)}}
    with pytest.raises(InvalidRequestError, match=r"And 4990 more problems\.$"):
        REQUESTS.read(document)
