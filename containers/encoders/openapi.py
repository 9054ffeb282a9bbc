"""The OpenAPI document of an endpoint: its task's requests and answers, with its own limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from containers.encoders.manifest import (
    EMBEDDINGS,
    QUESTION_ANSWERING,
    SEQUENCE_CLASSIFICATION,
    TOKEN_CLASSIFICATION,
    read_manifest,
)
from containers.encoders.requests import (
    EmbeddingRequest,
    QuestionRequest,
    RequestLimits,
    SequenceRequest,
    TokenRequest,
)
from containers.encoders.settings import EncoderSettings
from containers.serving.objects import request_description
from containers.serving.openapi import JSON, Schema, endpoint_document, object_schema, reference
from containers.serving.predictor import ModelLoadError
from containers.serving.settings import ServingSettings


@dataclass(frozen=True)
class _Task:
    """The part of a task's document that does not follow from the fields of its requests.

    `answers` has the schema of an answer, and the schemas that it refers to. `several` are the
    inputs of one more example, for endpoints that accept several.
    """

    title: str
    does: str
    request: type[Any]
    answers: Mapping[str, Schema]
    examples: Mapping[str, tuple[str, Any]]
    several: list[Any]


def document_of_directory(serving: ServingSettings, settings: EncoderSettings) -> Schema | None:
    """Returns the document of the model that will be served.

    It is None if the directory holds no valid manifest; loading the model then fails with the
    reason.
    """
    try:
        manifest = read_manifest(serving.model_dir)
    except ModelLoadError:
        return None
    limits = RequestLimits(
        sequence_length=manifest.buckets[-1],
        max_inputs=serving.max_queue_length,
        max_characters=settings.max_text_characters,
    )
    return openapi_document(manifest.task, limits)


def openapi_document(task: str, limits: RequestLimits) -> Schema:
    described = _TASKS[task]
    several = {"several": ("Several in one request.", {"inputs": described.several})}
    has_several = len(described.several) <= limits.max_inputs
    return endpoint_document(
        title=described.title,
        calls="InvokeEndpoint",
        does=described.does,
        examples={**described.examples, **(several if has_several else {})},
        answer={
            "description": "The answers.",
            "content": {JSON: {"schema": reference("Answers")}},
        },
        schemas={
            **request_description(described.request, limits).components(),
            **described.answers,
        },
    )


def _object(properties: Mapping[str, Schema]) -> Schema:
    """Returns the schema of an object that has all of these fields and no others."""
    return object_schema(properties, required=list(properties))


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items, "minItems": 1}


_NUMBER: Final[Schema] = {"type": "number"}
_POSITION: Final[Schema] = {"type": "integer", "minimum": 0}
_TEXT: Final[Schema] = {"type": "string"}
_ENTITY: Final = {"score": _NUMBER, "word": _TEXT, "start": _POSITION, "end": _POSITION}
_LABELS: Final = _array(reference("Label"))
_ENTITIES: Final[Schema] = {"type": "array", "items": reference("Entity")}
_QUESTIONS: Final = (
    {"question": "Who owns search-qa?", "context": "The platform team owns search-qa."},
    {"question": "Where is search-qa?", "context": "search-qa is in eu-west-1."},
)
_TASKS: Final[Mapping[str, _Task]] = {
    QUESTION_ANSWERING: _Task(
        title="Question answering",
        does="Finds the answers to questions in their contexts. A context that is too long for one "
        "window is searched in several.",
        request=QuestionRequest,
        answers={
            "Answer": _object(
                {"score": _NUMBER, "start": _POSITION, "end": _POSITION, "answer": _TEXT}
            )
            | {"description": "A part of the context; start and end count its characters."},
            "Answers": {
                "oneOf": [
                    reference("Answer"),
                    _array(reference("Answer")),
                    _array(_array(reference("Answer"))),
                ],
                "description": "One answer, or an array of them with top_k above 1; an array of "
                "either where inputs is one.",
            },
        },
        examples={
            "question": ("One question.", {"inputs": _QUESTIONS[0]}),
            "best": (
                "The two best answers.",
                {"inputs": _QUESTIONS[1], "parameters": {"top_k": 2, "max_answer_len": 3}},
            ),
            "impossible": (
                "Where there may be no answer.",
                {"inputs": _QUESTIONS[0], "parameters": {"handle_impossible_answer": True}},
            ),
        },
        several=list(_QUESTIONS),
    ),
    SEQUENCE_CLASSIFICATION: _Task(
        title="Sequence classification",
        does="Finds the labels of texts.",
        request=SequenceRequest,
        answers={
            "Label": _object({"label": _TEXT, "score": _NUMBER}),
            "Answers": {
                "oneOf": [_LABELS, _array(_LABELS)],
                "description": "The labels of the text, the best first; an array of such arrays "
                "where inputs is one.",
            },
        },
        examples={
            "text": ("The best label.", {"inputs": "It works."}),
            "best": (
                "The two best, of a text that may be cut off.",
                {"inputs": "It works.", "parameters": {"top_k": 2, "truncation": True}},
            ),
        },
        several=["It works.", "It does not."],
    ),
    TOKEN_CLASSIFICATION: _Task(
        title="Token classification",
        does="Finds the entities in texts. A text that is too long for one window is read in "
        "several.",
        request=TokenRequest,
        answers={
            "Entity": {
                "oneOf": [
                    _object({"entity_group": _TEXT, **_ENTITY}),
                    _object(
                        {"entity": _TEXT, "index": {"type": "integer", "minimum": 1}, **_ENTITY}
                    ),
                ],
                "description": "Some characters of the text with their label; with "
                "aggregation_strategy none a token, and its number from 1.",
            },
            "Answers": {
                "oneOf": [_ENTITIES, _array(_ENTITIES)],
                "description": "The entities of the text, in its order; an array of such arrays "
                "where inputs is one.",
            },
        },
        examples={
            "text": ("The entities of a text.", {"inputs": "Ada wrote it."}),
            "tokens": (
                "Every token by itself.",
                {
                    "inputs": "Ada wrote it.",
                    "parameters": {"aggregation_strategy": "none", "ignore_labels": []},
                },
            ),
        },
        several=["Ada wrote it.", "Who did?"],
    ),
    EMBEDDINGS: _Task(
        title="Embeddings",
        does="Makes vectors of texts.",
        request=EmbeddingRequest,
        answers={
            "Answers": _array(_array(_NUMBER))
            | {"description": "A vector for each text, in an array also of one text."},
        },
        examples={
            "text": ("One text.", {"inputs": "It works."}),
            "normalized": (
                "Of length 1, of a text that may be cut off.",
                {"inputs": "It works.", "normalize": True, "truncate": True},
            ),
        },
        several=["It works.", "It does not."],
    ),
}
