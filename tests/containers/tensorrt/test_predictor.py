"""Bodies in, bodies out, and what a model directory must hold."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from containers.serving.errors import InvalidRequestError
from containers.serving.predictor import ModelLoadError
from containers.tensorrt.predictor import TextGenerationPredictor
from containers.tensorrt.settings import GenerationSettings

SAMPLE = Path("samples/gpt2-autocomplete/model")
SETTINGS = GenerationSettings(max_input_tokens=16, max_new_tokens=42, default_new_tokens=12)


@pytest.fixture(scope="module")
def predictor() -> TextGenerationPredictor:
    loaded = TextGenerationPredictor(SETTINGS)
    loaded.load(SAMPLE)
    return loaded


def answer(predictor: TextGenerationPredictor, inputs: Any, **parameters: Any) -> list[str]:
    body = json.dumps({"inputs": inputs, "parameters": parameters}).encode()
    outputs = json.loads(predictor.render(predictor.predict(predictor.parse(body))))
    return [output["generated_text"] for output in outputs]


def test_the_sample_completes_in_words(predictor: TextGenerationPredictor) -> None:
    assert answer(predictor, "Amazon S3 bucket") == [" name for the Amazon S3 bucket."]


def test_the_prompt_comes_first_where_asked(predictor: TextGenerationPredictor) -> None:
    texts = answer(predictor, ["Amazon S3 bucket", "Specifies the"], return_full_text=True)
    assert texts[0] == "Amazon S3 bucket name for the Amazon S3 bucket."
    assert texts[1].startswith("Specifies the ")


def test_equal_prompts_of_one_request_are_sampled_apart(
    predictor: TextGenerationPredictor,
) -> None:
    drawn = answer(predictor, ["The name of the"] * 2, do_sample=True, temperature=2.0, seed=1)
    again = answer(predictor, "The name of the", do_sample=True, temperature=2.0, seed=1)
    assert drawn[0] != drawn[1]
    assert drawn[0] == again[0]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{}", "The field inputs is missing: a string or an array of strings."),
        ('{"inputs": 5}', "inputs must be a string or an array of strings, not a number."),
        ('{"inputs": ["a", ""]}', "inputs[1] is an empty string: it must hold some text."),
        ('{"inputs": []}', "inputs is an empty array: it must hold at least one string."),
        (
            '{"inputs": "a", "parameters": {"max_new_token": 3}}',
            "Unknown parameter 'max_new_token' (did you mean max_new_tokens?); allowed: "
            "max_new_tokens, do_sample, temperature, top_k, top_p, seed, return_full_text.",
        ),
        (
            '{"inputs": "a", "parameters": {"max_new_tokens": 43}}',
            "max_new_tokens=43 is not within 1 to 42.",
        ),
        (
            '{"inputs": "a", "parameters": {"seed": 1}}',
            "seed would have no effect: set do_sample to true as well.",
        ),
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
            '{"inputs": "\\ud800", "parameters": {}}',
            "inputs holds half of a surrogate pair at character 0.",
        ),
        (
            json.dumps({"inputs": "bucket " * 17}),
            "Input 0 has 19 tokens; the limit is 16.",
        ),
    ],
)
def test_a_bad_request_is_told_what_is_wrong(
    predictor: TextGenerationPredictor, body: str, message: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        predictor.parse(body.encode())
    assert str(caught.value) == message


def test_prompt_and_new_tokens_must_fit_the_model() -> None:
    predictor = TextGenerationPredictor(GenerationSettings(max_new_tokens=127))
    predictor.load(SAMPLE)
    body = json.dumps({"inputs": "Amazon S3 bucket", "parameters": {"max_new_tokens": 125}})
    with pytest.raises(InvalidRequestError) as caught:
        predictor.parse(body.encode())
    assert str(caught.value) == (
        "Input 0 has 4 tokens and max_new_tokens is 125: together they exceed the model's 128 "
        "positions; at most 124 new tokens fit."
    )


def test_every_missing_file_is_named_at_once(tmp_path: Path) -> None:
    shutil.copy2(SAMPLE / "model.onnx", tmp_path)
    with pytest.raises(ModelLoadError) as caught:
        TextGenerationPredictor(SETTINGS).load(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path} lacks config.json, tokenizer.json, model.safetensors (weights of model.onnx)"
    )


def test_an_engine_is_not_served_from_the_cpu_in_silence(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path, dirs_exist_ok=True)
    (tmp_path / "model.engine").write_bytes(b"plan")
    with pytest.raises(ModelLoadError) as caught:
        TextGenerationPredictor(SETTINGS).load(tmp_path)
    assert str(caught.value) == (
        "model.engine needs TensorRT's runtime, which this container does not have: publish the "
        "ONNX graph (model.onnx) without an engine"
    )


def test_limits_beyond_the_model_stop_the_start() -> None:
    with pytest.raises(ModelLoadError) as caught:
        TextGenerationPredictor(GenerationSettings(max_input_tokens=128)).load(SAMPLE)
    assert str(caught.value) == (
        "SLIPWAY_MAX_INPUT_TOKENS=128 exceeds 127: the model has 128 positions and one is for a "
        "new token"
    )
