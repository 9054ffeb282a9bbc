"""Bodies in, bodies out, and what a model directory must hold."""

import json
import shutil

import pytest

from containers.serving.errors import InvalidRequestError
from containers.serving.json_requests import parse_json_object
from containers.serving.predictor import ModelLoadError
from containers.tensorrt import requests
from containers.tensorrt.predictor import TextGenerationPredictor
from containers.tensorrt.settings import GenerationSettings
from tests.containers.tensorrt import sample_model
from tests.containers.tensorrt.sample_model import SAMPLE
from tests.support.servers import running_server

SETTINGS = GenerationSettings(max_input_tokens=16, max_new_tokens=42, default_new_tokens=12)


@pytest.fixture(scope="module")
def predictor():
    loaded = TextGenerationPredictor(SETTINGS)
    loaded.load(SAMPLE)
    return loaded


def answer(predictor, inputs, **parameters):
    outputs = sample_model.answer(predictor, {"inputs": inputs, "parameters": parameters})
    return [output["generated_text"] for output in outputs]


def test_the_sample_completes_in_words(predictor):
    assert answer(predictor, "Amazon S3 bucket") == [" name for the Amazon S3 bucket."]


def test_the_prompt_comes_first_where_asked(predictor):
    texts = answer(predictor, ["Amazon S3 bucket", "Specifies the"], return_full_text=True)
    assert texts[0] == "Amazon S3 bucket name for the Amazon S3 bucket."
    assert texts[1].startswith("Specifies the ")


@pytest.mark.anyio
async def test_a_body_is_parsed_once(monkeypatch):
    parsed = []

    def parse(body):
        parsed.append(body)
        return parse_json_object(body)

    monkeypatch.setattr(requests, "parse_json_object", parse)
    async with running_server(TextGenerationPredictor(SETTINGS), model_dir=SAMPLE) as running:
        for is_streamed in (False, True):
            body = {"inputs": "Amazon S3 bucket", "stream": is_streamed}
            answered = await running.client.post("/invocations", json=body)
            assert answered.status_code == 200
            assert answered.headers["content-type"].startswith("text/event") is is_streamed
    assert len(parsed) == 2


def test_equal_prompts_of_one_request_are_sampled_apart(predictor):
    drawn = answer(predictor, ["The name of the"] * 2, do_sample=True, temperature=2.0, seed=1)
    again = answer(predictor, "The name of the", do_sample=True, temperature=2.0, seed=1)
    assert drawn[0] != drawn[1]
    assert drawn[0] == again[0]


def test_a_text_ends_before_its_first_stop_text(predictor):
    def cut(*stop, **parameters):
        [text] = answer(predictor, "Amazon S3 bucket", stop=list(stop), **parameters)
        return text

    # The whole is " name for the Amazon S3 bucket."
    assert cut("bucket") == " name for the Amazon S3 "
    assert cut(" Amazon S3 b", "bucket") == " name for the"
    assert cut("zon", "S3") == " name for the Ama"
    assert cut("never there") == " name for the Amazon S3 bucket."
    assert cut("name") == " "
    assert cut(" ") == ""
    assert cut("S3", return_full_text=True) == "Amazon S3 bucket name for the Amazon "


def test_a_prompt_has_as_many_completions_as_asked(predictor):
    sampled = {"do_sample": True, "temperature": 2.0, "seed": 1}
    four = answer(predictor, "The name of the", num_return_sequences=4, **sampled)
    assert len(set(four)) == 4
    assert answer(predictor, "The name of the", num_return_sequences=2, **sampled) == four[:2]
    assert answer(predictor, "The name of the", **sampled) == four[:1]
    both = answer(
        predictor, ["The name of the", "Amazon S3 bucket"], num_return_sequences=4, **sampled
    )
    assert (both[:4], len(both)) == (four, 8)


def test_beams_are_answered_best_first(predictor):
    best = answer(predictor, "The name of the", num_beams=4)
    three = answer(predictor, "The name of the", num_beams=4, num_return_sequences=3)
    assert three[:1] == best
    assert len(set(three)) == 3
    long, short = (
        answer(predictor, "The name of the", num_beams=4, length_penalty=penalty)
        for penalty in (5.0, -5.0)
    )
    assert len(short[0]) < len(long[0])
    full = answer(predictor, "The name of the", num_beams=4, return_full_text=True)
    assert full == ["The name of the" + best[0]]


def stream(predictor, text, **parameters):
    body = {"inputs": text, "parameters": parameters}
    return [json.loads(event) for event in sample_model.stream(predictor, body)]


def test_a_stream_tells_the_text_piece_by_piece(predictor):
    events = stream(predictor, "Amazon S3 bucket")
    whole = " name for the Amazon S3 bucket."
    assert "".join(event["token"]["text"] for event in events) == whole
    assert len(events) > 5
    assert all(event["generated_text"] is event["details"] is None for event in events[:-1])
    assert events[-1]["generated_text"] == whole
    assert events[-1]["details"]["finish_reason"] == "eos_token"


def test_a_stream_says_why_it_ended(predictor):
    assert stream(predictor, "The name of the", max_new_tokens=3)[-1]["details"] == {
        "finish_reason": "length",
        "generated_tokens": 3,
    }
    stopped = stream(predictor, "Amazon S3 bucket", stop=["the Amazon"], return_full_text=True)
    assert stopped[-1]["details"]["finish_reason"] == "stop_sequence"
    assert stopped[-1]["generated_text"] == "Amazon S3 bucket name for "


def test_a_stream_never_shows_the_beginning_of_a_stop_text(predictor):
    for stop in ("the Amazon", " S3 b", "bucket.", "r the Amazon S4", "name for it"):
        [whole] = answer(predictor, "Amazon S3 bucket", stop=[stop])
        events = stream(predictor, "Amazon S3 bucket", stop=[stop])
        assert "".join(event["token"]["text"] for event in events) == whole


def test_an_input_that_left_is_forgotten(predictor):
    [first, second] = predictor.parse(b'{"inputs": ["The name of the", "Amazon S3 bucket"]}')
    predictor.join({1: first, 2: second})
    predictor.leave([1, 1, 3])
    outputs = {}
    while not outputs:
        outputs |= predictor.step().outputs
    assert list(outputs) == [2]
    [left] = outputs[2].answers
    assert left.text == " name for the Amazon S3 bucket."


def test_nothing_is_left_after_a_failure(predictor):
    [one] = predictor.parse(b'{"inputs": "The name of the"}')
    predictor.join({1: one})
    predictor.clear()
    assert answer(predictor, "Amazon S3 bucket") == [" name for the Amazon S3 bucket."]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{}", "The field inputs is missing: a string or an array of strings."),
        ('{"inputs": []}', "inputs is an empty array: it must hold at least one string."),
        (
            '{"inputs": "a", "parameters": {"do_sample": true, "top_p": 1.5}}',
            "top_p=1.5 is not within above 0 to 1.",
        ),
        (
            '{"inputs": "a", "parameters": {"do_sample": true, "top_p": 1' + "0" * 400 + "}}",
            "top_p=a number is not within above 0 to 1.",
        ),
        (
            '{"inputs": "a", "parameters": {"do_sample": true, "temperature": true}}',
            "temperature must be a number, not a boolean.",
        ),
        (
            json.dumps({"inputs": "bucket " * 17}),
            "Input 0 has 19 tokens; the limit is 16.",
        ),
    ],
)
def test_a_bad_request_is_told_what_is_wrong(predictor, body, message):
    with pytest.raises(InvalidRequestError) as caught:
        predictor.parse(body.encode())
    assert str(caught.value) == message


def test_every_missing_file_is_named_at_once(tmp_path):
    shutil.copy2(SAMPLE / "model.onnx", tmp_path)
    with pytest.raises(ModelLoadError) as caught:
        TextGenerationPredictor(SETTINGS).load(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path} lacks config.json, tokenizer.json, model.safetensors (weights of model.onnx)"
    )


def test_limits_beyond_the_model_stop_the_start():
    with pytest.raises(ModelLoadError) as caught:
        TextGenerationPredictor(GenerationSettings(max_input_tokens=128)).load(SAMPLE)
    assert str(caught.value) == (
        "SLIPWAY_MAX_INPUT_TOKENS=128 exceeds 127: the model has 128 positions and one is for a "
        "new token"
    )
