"""The OpenAPI document: valid, and of one mind with the parsers and with what is answered."""

import functools
import json
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from containers.encoders.manifest import TASK_OUTPUTS
from containers.encoders.openapi import document_of_directory, openapi_document
from containers.encoders.requests import (
    EmbeddingRequest,
    QuestionRequest,
    RequestLimits,
    SequenceRequest,
    TokenRequest,
)
from containers.neuron.settings import NeuronSettings
from containers.serving.errors import InvalidRequestError
from containers.serving.objects import request_description
from containers.serving.settings import ServingSettings
from slipway.embedded_aws.hosting.families import programs
from tests.containers.neuron.machine import answer, opened
from tests.containers.neuron.running_program import serving

SAMPLE = Path("samples/bert-qa/model")
LIMITS = RequestLimits(sequence_length=32, max_inputs=20, max_characters=1000)
SMALLEST = RequestLimits(sequence_length=8, max_inputs=1, max_characters=100)
REQUESTS = {
    "question-answering": QuestionRequest,
    "sequence-classification": SequenceRequest,
    "token-classification": TokenRequest,
    "embeddings": EmbeddingRequest,
}
INPUTS = dict.fromkeys(REQUESTS, "a") | {"question-answering": {"question": "a", "context": "b"}}


def schema_of(document, name):
    return Draft202012Validator(
        {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    )


def examples_of(document):
    content = document["paths"]["/invocations"]["post"]["requestBody"]["content"]
    return {
        name: example["value"] for name, example in content["application/json"]["examples"].items()
    }


def is_taken(task, body, limits=LIMITS):
    try:
        _description(task, limits).parse(json.dumps(body).encode())
    except InvalidRequestError:
        return False
    return True


@functools.cache
def _description(task, limits):
    return request_description(REQUESTS[task], limits)


def test_every_task_has_a_document():
    assert set(REQUESTS) == set(TASK_OUTPUTS)


@pytest.mark.parametrize("limits", [LIMITS, SMALLEST])
@pytest.mark.parametrize("task", REQUESTS)
def test_it_is_a_valid_openapi_document(task, limits):
    document = openapi_document(task, limits)
    # As it is served.
    OpenAPIV31SpecValidator(json.loads(json.dumps(document))).validate()
    examples = examples_of(document)
    assert ("several" in examples) == (limits.max_inputs > 1)
    for example in examples.values():
        schema_of(document, "Request").validate(example)
        assert is_taken(task, example, limits)


@pytest.mark.parametrize("task", REQUESTS)
def test_its_examples_are_answered(task, loaded):
    document = openapi_document(task, LIMITS)
    labels = ("O", "B-X") if task == "token-classification" else ("NO", "YES")
    with loaded(task=task, labels=labels) as predictor:
        for example in examples_of(document).values():
            found = answer(predictor, **example)
            schema_of(document, "Answers").validate(found)
            # Nothing that is no answer is taken for one.
            assert not schema_of(document, "Answers").is_valid({"answer": found})
            assert isinstance(found, list) or task == "question-answering"


def test_the_samples_answers_are_of_the_schema_too():
    document = document_of_directory(ServingSettings(model_dir=SAMPLE), NeuronSettings())
    with opened(SAMPLE) as predictor:
        found = {
            name: answer(predictor, **example) for name, example in examples_of(document).items()
        }
    for each in found.values():
        schema_of(document, "Answers").validate(each)
    assert found["question"]["answer"] == "platform"
    assert [each["answer"] for each in found["several"]] == ["platform", "eu-west-1"]
    assert len(found["best"]) == 2


def test_it_holds_the_limits_of_this_endpoint():
    schemas = openapi_document("question-answering", LIMITS)["components"]["schemas"]
    parameters = schemas["Parameters"]["properties"]
    assert parameters["max_seq_len"]["maximum"] == 32
    assert parameters["max_answer_len"]["default"] == 15
    assert schemas["Question"]["properties"]["context"]["maxLength"] == 1000
    inputs = schemas["Request"]["properties"]["inputs"]
    assert inputs["oneOf"][1]["maxItems"] == 20
    assert "are at most 20" in inputs["description"]


# On both sides of every limit.
EDGES = (
    *(-1, 0, 1, 2, 7, 8, 9, 31, 32, 33, 99, 100, 101, 9_999, 10_000, 10_001),
    *([], ["x"] * 10_000, ["x"] * 10_001, ["x", 1]),
    *(True, None, "", "simple", "softmax", "word"),
)
# Of every type.
VALUES = strategies.one_of(
    strategies.none(),
    strategies.booleans(),
    strategies.integers(-2, 130),
    strategies.sampled_from([9_999, 10_000, 10_001, 10**30, -(10**30)]),
    strategies.floats(-2, 40, allow_nan=False).filter(lambda value: not value.is_integer()),
    strategies.sampled_from(["", "simple", "none", "max", "softmax", "sigmoid", "x", [], {}]),
    strategies.lists(strategies.one_of(strategies.text(max_size=3), strategies.integers())),
)
FIELDS = {
    task: list(
        openapi_document(task, LIMITS)["components"]["schemas"]
        .get("Parameters", {})
        .get("properties", {"normalize": {}, "truncate": {}})
    )
    for task in REQUESTS
}


def body_with(task, name, value):
    own = {name: value} if task == "embeddings" else {"parameters": {name: value}}
    return {"inputs": INPUTS[task], **own}


@pytest.mark.parametrize("task", REQUESTS)
def test_parser_and_document_agree_on_every_value_of_every_field(task):
    schema = schema_of(openapi_document(task, LIMITS), "Request")

    def check(value):
        for name in FIELDS[task]:
            body = body_with(task, name, value)
            assert schema.is_valid(body) == is_taken(task, body), (name, value)

    for edge in EDGES:
        check(edge)
    settings(max_examples=50, deadline=None)(given(value=VALUES)(check))()


@pytest.mark.parametrize("task", REQUESTS)
@pytest.mark.parametrize(
    "inputs", ["a", "", [], ["a"], ["a"] * 21, [""], {"question": "a"}, {"context": "a"}, None, 1]
)
def test_parser_and_document_agree_on_inputs(task, inputs):
    schema = schema_of(openapi_document(task, LIMITS), "Request")
    assert schema.is_valid({"inputs": inputs}) == is_taken(task, {"inputs": inputs})


@pytest.mark.parametrize("task", REQUESTS)
@pytest.mark.parametrize("field", ["parameters", "normalize", "stream", "input"])
def test_both_know_the_same_fields(task, field):
    schema = schema_of(openapi_document(task, LIMITS), "Request")
    body = {"inputs": INPUTS[task], field: {} if field == "parameters" else True}
    known = {"embeddings": "normalize"}.get(task, "parameters")
    assert schema.is_valid(body) == is_taken(task, body) == (field == known)


def test_a_directory_without_a_manifest_has_no_document(tmp_path):
    assert document_of_directory(ServingSettings(model_dir=tmp_path), NeuronSettings()) is None


def test_the_embedded_aws_runs_the_program_with_its_docs():
    variables = programs()["slipway/neuron"].environment
    with serving(**variables, SLIPWAY_MAX_QUEUE_LENGTH="31") as (_, client, _):
        document = client.get("/openapi.json").json()
        assert "SwaggerUIBundle" in client.get("/docs").text
    inputs = document["components"]["schemas"]["Request"]["properties"]["inputs"]
    assert inputs["oneOf"][1]["maxItems"] == 31
