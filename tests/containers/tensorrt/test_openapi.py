"""The OpenAPI document: valid, and of one mind with the parser."""

import json

import pytest
from hypothesis import given, settings, strategies
from openapi_spec_validator import OpenAPIV31SpecValidator

from containers.serving.errors import ERROR_KINDS, InvalidRequestError
from containers.serving.objects import Object
from containers.serving.problems import Problems
from containers.tensorrt.openapi import openapi_document
from containers.tensorrt.parameters import Parameters, RequestLimits
from containers.tensorrt.predictor import TextGenerationPredictor
from containers.tensorrt.requests import BodyReader
from containers.tensorrt.settings import GenerationSettings
from tests.containers.tensorrt.sample_model import answer, model_with_template, schema_of

SETTINGS = GenerationSettings(max_input_tokens=16, max_new_tokens=42, default_new_tokens=12)
LIMITS = RequestLimits(SETTINGS, max_batch_size=8, max_texts=20)
SMALLEST = RequestLimits(
    GenerationSettings(max_input_tokens=16, max_new_tokens=1, default_new_tokens=1),
    max_batch_size=1,
    max_texts=1,
)
IS_DEEP = settings.get_current_profile_name() == "deep"


@pytest.mark.parametrize("limits", [LIMITS, SMALLEST])
def test_it_is_a_valid_openapi_document(limits):
    document = openapi_document(limits)
    # As it is served.
    OpenAPIV31SpecValidator(json.loads(json.dumps(document))).validate()


@pytest.mark.parametrize("limits", [LIMITS, SMALLEST])
def test_its_examples_are_answered(limits, tmp_path):
    document = openapi_document(limits)
    predictor = TextGenerationPredictor(
        limits.generation,
        max_batch_size=limits.max_batch_size,
        max_texts=limits.max_texts,
    )
    predictor.load(model_with_template(tmp_path / "model"))
    content = document["paths"]["/invocations"]["post"]["requestBody"]["content"]
    examples = content["application/json"]["examples"]
    assert len(examples) == (7 if limits is LIMITS else 5)
    for example in examples.values():
        schema_of(document, "Request").validate(example["value"])
        assert predictor.parse(json.dumps(example["value"]).encode())
        found = answer(predictor, example["value"] | {"stream": False})
        content = document["paths"]["/invocations"]["post"]["responses"]["200"]["content"]
        schema_of(document, content["application/json"]["schema"]).validate(found)


def test_it_holds_the_limits_of_this_endpoint():
    """Those of values are held against the parser below."""
    schemas = openapi_document(LIMITS)["components"]["schemas"]
    texts = schemas["TextGeneration"]["properties"]["inputs"]
    assert texts["oneOf"][1]["maxItems"] == 20
    assert "at most 16 tokens" in texts["description"]
    assert "Without max_new_tokens it is 12" in schemas["Parameters"]["description"]


def test_it_names_every_error():
    document = openapi_document(LIMITS)
    answers = document["paths"]["/invocations"]["post"]["responses"]
    for kind in ERROR_KINDS.values():
        assert kind.code in answers[str(kind.status)]["description"]
        assert ("headers" in answers[str(kind.status)]) == (kind.retry_after_seconds is not None)
    schema_of(document, "Error").validate({"error": {"code": "overloaded", "message": "Later."}})
    assert not schema_of(document, "Error").is_valid({"error": {"code": "?", "message": "x"}})


BODIES = BodyReader(LIMITS)
KINDS = {
    "TextGeneration": BODIES.text_generation.description.kinds,
    "Parameters": Object(Parameters, "Parameters").within(LIMITS).kinds,
    "Completion": BODIES.openai.completion.kinds,
    "Chat": BODIES.openai.chat.kinds,
}
USER = {"role": "user", "content": "Hello"}
# Values around every limit, and of every type.
VALUES = strategies.one_of(
    strategies.none(),
    strategies.booleans(),
    strategies.integers(-2, 50),
    strategies.sampled_from([10**6, 10**6 + 1, 2**63 - 1, 2**63, 10**30, -(10**30)]),
    strategies.floats(-11, 102, allow_nan=False),
    strategies.sampled_from(
        ["", "x", "never", "none", "y" * 1000, "z" * 1001, [], {}, ["a"], ["a", 1]]
    ),
    strategies.sampled_from([[USER], [{**USER, "x": 1}], [{"role": "user"}], [USER, 5]]),
    strategies.sampled_from(
        [{"type": "text"}, {"include_usage": True}, {"include_usage": None}, {"other": 1}]
    ),
    strategies.lists(strategies.text(max_size=3), max_size=18),
)


@pytest.mark.parametrize("form", KINDS)
def test_parser_and_document_agree_on_every_value_of_every_field(form):
    document = openapi_document(LIMITS)
    # Both refuse all other fields; the parser does so in `test_requests.py`.
    assert document["components"]["schemas"][form]["additionalProperties"] is False
    # Both of OpenAI's forms have these.
    known = KINDS["Completion"] if form == "Chat" else {}
    fields = {
        name: document["components"]["schemas"][form]["properties"][name]
        for name in KINDS[form]
        if name not in known
    }
    schemas = {name: schema_of(document, field) for name, field in fields.items()}
    integers = {name for name, field in fields.items() if '"integer"' in json.dumps(field)}

    @settings(max_examples=150 if IS_DEEP else 50, deadline=None)
    @given(value=VALUES)
    def agree(value):
        for name, schema in schemas.items():
            if isinstance(value, float) and value.is_integer() and name in integers:
                continue  # JSON Schema takes 3.0 for an integer, and the parser does not
            problems = Problems()
            KINDS[form][name].read(value, name, problems)
            try:
                problems.finish()
                is_taken = True
            except InvalidRequestError:
                is_taken = False
            assert schema.is_valid(value) == is_taken, name

    agree()
