"""Bodies in, bodies out, and what a model directory must hold."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from containers.serving.errors import InvalidRequestError
from containers.serving.predictor import ModelLoadError
from containers.tensorrt.generation import Cache, Float32Array, Int64Array, StepSession
from containers.tensorrt.predictor import TextGenerationPredictor
from containers.tensorrt.runtimes.selection import open_session
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


def test_a_text_ends_before_its_first_stop_text(predictor: TextGenerationPredictor) -> None:
    def cut(*stop: str, **parameters: Any) -> str:
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


def test_a_stop_text_spares_the_steps_after_it(predictor: TextGenerationPredictor) -> None:
    drawn = answer(
        predictor, "The name", do_sample=True, temperature=1.5, seed=2, max_new_tokens=30
    )
    stopped = answer(
        predictor,
        "The name",
        do_sample=True,
        temperature=1.5,
        seed=2,
        max_new_tokens=30,
        stop=[drawn[0][9:14]],
    )
    assert stopped == [drawn[0][: drawn[0].index(drawn[0][9:14])]]


def test_a_prompt_has_as_many_completions_as_asked(predictor: TextGenerationPredictor) -> None:
    sampled = {"do_sample": True, "temperature": 2.0, "seed": 1}
    four = answer(predictor, "The name of the", num_return_sequences=4, **sampled)
    assert len(set(four)) == 4
    assert answer(predictor, "The name of the", num_return_sequences=2, **sampled) == four[:2]
    assert answer(predictor, "The name of the", **sampled) == four[:1]
    both = answer(
        predictor, ["The name of the", "Amazon S3 bucket"], num_return_sequences=4, **sampled
    )
    assert (both[:4], len(both)) == (four, 8)


def test_beams_are_answered_best_first(predictor: TextGenerationPredictor) -> None:
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


class Counting:
    """A session that notes the rows of every step."""

    def __init__(self, session: StepSession, batch_sizes: list[int]) -> None:
        self._session = session
        self._batch_sizes = batch_sizes
        self.empty_cache = session.empty_cache

    def step(
        self, ids: Int64Array, mask: Int64Array, positions: Int64Array, past: Cache
    ) -> tuple[Float32Array, Cache]:
        self._batch_sizes.append(len(ids))
        return self._session.step(ids, mask, positions, past)


def test_no_step_exceeds_the_batch_size_and_no_input_notices() -> None:
    batch_sizes: list[int] = []
    predictor = TextGenerationPredictor(
        GenerationSettings(),
        max_batch_size=5,
        open_session=lambda *arguments: Counting(open_session(*arguments), batch_sizes),
    )
    predictor.load(SAMPLE)
    requests: list[tuple[str, dict[str, Any]]] = [
        ("Amazon S3 bucket", {"num_beams": 4}),
        ("Specifies the", {"num_beams": 5, "num_return_sequences": 2}),
        ("The name", {}),
        ("The name of the", {"do_sample": True, "seed": 4, "stop": ["e"]}),
    ]
    inputs = [
        one
        for text, parameters in requests
        for one in predictor.parse(json.dumps({"inputs": text, "parameters": parameters}).encode())
    ]
    alone = [predictor.predict([one])[0] for one in inputs]
    batch_sizes.clear()
    assert predictor.predict(inputs) == alone
    # The search with 4 beams and the greedy row, then the one with 5, then the sampled row.
    assert batch_sizes[:2] == [2, 5]
    assert max(batch_sizes) == 5
    assert [len(texts) for texts in alone] == [1, 2, 1, 1]


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
            "max_new_tokens, do_sample, temperature, top_k, top_p, seed, stop, "
            "num_return_sequences, num_beams, length_penalty, early_stopping, return_full_text.",
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
