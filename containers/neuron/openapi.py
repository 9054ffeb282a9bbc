"""The OpenAPI document of an endpoint: its task's requests and answers, with its own limits."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from containers.neuron.manifest import (
    EMBEDDINGS,
    QUESTION_ANSWERING,
    SEQUENCE_CLASSIFICATION,
    TOKEN_CLASSIFICATION,
    read_manifest,
)
from containers.neuron.requests import (
    AGGREGATION_STRATEGIES,
    DEFAULT_ANSWER_TOKENS,
    LEAST_WINDOW_TOKENS,
    MOST_ANSWERS,
    MOST_LABELS,
    SCORE_FUNCTIONS,
    RequestLimits,
)
from containers.neuron.settings import EncoderSettings
from containers.serving.openapi import JSON, Schema, endpoint_document, object_schema, reference
from containers.serving.predictor import ModelLoadError
from containers.serving.settings import ServingSettings

# Any: JSON.
_Examples: TypeAlias = dict[str, tuple[str, Any]]

_NUMBER: Final[Schema] = {"type": "number"}
_POSITION: Final[Schema] = {"type": "integer", "minimum": 0}
_TEXT: Final[Schema] = {"type": "string"}


def document_of_directory(serving: ServingSettings, settings: EncoderSettings) -> Schema | None:
    """Returns the document of the model that will be served.

    Args:
        serving: names the model directory, and limits the rows of a request.
        settings: limits the length of a text.

    Returns:
        None if the directory holds no valid manifest; loading the model then fails with the reason.
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
    """Returns the OpenAPI document of a task.

    Args:
        task: one of the manifest's tasks.
        limits: the endpoint's limits, which become bounds of the schemas.
    """
    return _TASKS[task](limits)


def _question_answering(limits: RequestLimits) -> Schema:
    longest = limits.sequence_length
    question = object_schema(
        {"question": _text(limits), "context": _text(limits)}, required=["question", "context"]
    )
    answer = object_schema(
        {"score": _NUMBER, "start": _POSITION, "end": _POSITION, "answer": _TEXT},
        required=["score", "start", "end", "answer"],
    ) | {"description": "A part of the context; start and end count its characters."}
    several = {"type": "array", "items": reference("Answer"), "minItems": 1}
    return _document(
        "Question answering",
        "Finds the answers to questions in their contexts. A context that is too long for one "
        "window is searched in several.",
        limits,
        one=reference("Question"),
        parameters={
            "top_k": _whole(1, MOST_ANSWERS, 1, "Answers to each question."),
            "max_answer_len": _whole(
                1, longest, min(DEFAULT_ANSWER_TOKENS, longest), "Longest answer, in tokens."
            ),
            "max_question_len": _whole(
                1,
                longest,
                None,
                "The question is cut off after that many tokens; without it one that leaves no "
                "room for the context is an error.",
            ),
            "max_seq_len": _whole(
                LEAST_WINDOW_TOKENS,
                longest,
                longest,
                "Longest window, in tokens, question and special tokens included.",
            ),
            "doc_stride": _whole(0, longest, None, _OVERLAP),
            "handle_impossible_answer": _flag(False, 'Makes "no answer", an empty text, one.'),
            "align_to_words": _flag(True, "An answer begins and ends with whole words."),
        },
        answers={
            "oneOf": [
                reference("Answer"),
                several,
                {"type": "array", "items": several, "minItems": 1},
            ],
            "description": "One answer, or an array of them with top_k above 1; an array of either "
            "where inputs is one.",
        },
        schemas={"Question": question, "Answer": answer},
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
    )


def _sequence_classification(limits: RequestLimits) -> Schema:
    label = object_schema({"label": _TEXT, "score": _NUMBER}, required=["label", "score"])
    labels = {"type": "array", "items": reference("Label"), "minItems": 1}
    return _document(
        "Sequence classification",
        "Finds the labels of texts.",
        limits,
        one=reference("Text"),
        parameters={
            "top_k": _whole(1, MOST_LABELS, 1, "Labels of each text."),
            "function_to_apply": _choice(
                SCORE_FUNCTIONS,
                None,
                "What makes scores of the model's outputs; without it what it was trained for.",
            ),
            "truncation": _flag(
                False, "A text that is too long is cut off; otherwise it is an error."
            ),
        },
        answers={
            "oneOf": [labels, {"type": "array", "items": labels, "minItems": 1}],
            "description": "The labels of the text, the best first; an array of such arrays where "
            "inputs is one.",
        },
        schemas={"Text": _text(limits), "Label": label},
        examples={
            "text": ("The best label.", {"inputs": "It works."}),
            "best": (
                "The two best, of a text that may be cut off.",
                {"inputs": "It works.", "parameters": {"top_k": 2, "truncation": True}},
            ),
        },
        several=["It works.", "It does not."],
    )


def _token_classification(limits: RequestLimits) -> Schema:
    place = {"score": _NUMBER, "word": _TEXT, "start": _POSITION, "end": _POSITION}
    entity = {
        "oneOf": [
            object_schema({"entity_group": _TEXT, **place}, required=["entity_group", *place]),
            object_schema(
                {"entity": _TEXT, "index": {"type": "integer", "minimum": 1}, **place},
                required=["entity", "index", *place],
            ),
        ],
        "description": "Some characters of the text with their label; with aggregation_strategy "
        "none a token, and its number from 1.",
    }
    entities = {"type": "array", "items": reference("Entity")}
    return _document(
        "Token classification",
        "Finds the entities in texts. A text that is too long for one window is read in several.",
        limits,
        one=reference("Text"),
        parameters={
            "aggregation_strategy": _choice(
                AGGREGATION_STRATEGIES, "simple", "What makes entities of tokens."
            ),
            "ignore_labels": {
                "type": "array",
                "items": _TEXT,
                "maxItems": MOST_LABELS,
                "default": ["O"],
                "description": "Labels that are left out.",
            },
            "stride": _whole(0, limits.sequence_length, None, _OVERLAP),
        },
        answers={
            "oneOf": [entities, {"type": "array", "items": entities, "minItems": 1}],
            "description": "The entities of the text, in its order; an array of such arrays where "
            "inputs is one.",
        },
        schemas={"Text": _text(limits), "Entity": entity},
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
    )


def _embeddings(limits: RequestLimits) -> Schema:
    return _document(
        "Embeddings",
        "Makes vectors of texts.",
        limits,
        one=reference("Text"),
        parameters=None,
        beside={
            "normalize": {
                "type": "boolean",
                "description": "Vectors get length 1; without it what the model was trained for.",
            },
            "truncate": _flag(
                False, "A text that is too long is cut off; otherwise it is an error."
            ),
        },
        answers={
            "type": "array",
            "items": {"type": "array", "items": _NUMBER, "minItems": 1},
            "minItems": 1,
            "description": "A vector for each text, in an array also of one text.",
        },
        schemas={"Text": _text(limits)},
        examples={
            "text": ("One text.", {"inputs": "It works."}),
            "normalized": (
                "Of length 1, of a text that may be cut off.",
                {"inputs": "It works.", "normalize": True, "truncate": True},
            ),
        },
        several=["It works.", "It does not."],
    )


def _document(
    title: str,
    does: str,
    limits: RequestLimits,
    *,
    one: Schema,
    parameters: Mapping[str, Schema] | None,
    answers: Schema,
    schemas: Mapping[str, Schema],
    examples: _Examples,
    several: list[Any],
    beside: Mapping[str, Schema] | None = None,
) -> Schema:
    """Returns the document of a task.

    Args:
        title: shown at the top of /docs.
        does: one sentence that says what an invocation does.
        limits: the endpoint's limits of a request.
        one: schema of a single input; `inputs` is one of these or an array.
        parameters: schemas of the request's parameters; None if the task has no such object.
        answers: the schema of an answer.
        schemas: schemas that the others refer to.
        examples: valid requests by name.
        several: inputs of one more example, for endpoints that accept several.
        beside: fields beside `inputs`.
    """
    fields: dict[str, Schema] = {
        "inputs": {
            "oneOf": [
                one,
                {"type": "array", "items": one, "minItems": 1, "maxItems": limits.max_inputs},
            ],
            "description": f"One or several. All windows together, of {limits.sequence_length} "
            f"tokens, are at most {limits.max_inputs}.",
        }
    }
    own: dict[str, Schema] = {}
    if parameters is not None:
        fields["parameters"] = reference("Parameters")
        own["Parameters"] = object_schema(parameters) | {
            "description": "A parameter that is not known is an error."
        }
    if len(several) <= limits.max_inputs:
        examples = examples | {"several": ("Several in one request.", {"inputs": several})}
    request = object_schema({**fields, **(beside or {})}, required=["inputs"])
    return endpoint_document(
        title=title,
        calls="InvokeEndpoint",
        does=does,
        examples=examples,
        answer={
            "description": "The answers.",
            "content": {JSON: {"schema": reference("Answers")}},
        },
        schemas={"Request": request, **own, **schemas, "Answers": answers},
    )


def _text(limits: RequestLimits) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": limits.max_characters}


def _whole(minimum: int, maximum: int, default: int | None, description: str) -> Schema:
    limits: Schema = {"type": "integer", "minimum": minimum, "maximum": maximum}
    return limits | _default(default) | {"description": description}


def _flag(default: bool, description: str) -> Schema:
    return {"type": "boolean", "default": default, "description": description}


def _choice(allowed: tuple[str, ...], default: str | None, description: str) -> Schema:
    return {"enum": list(allowed)} | _default(default) | {"description": description}


def _default(value: object) -> Schema:
    return {} if value is None else {"default": value}


_OVERLAP: Final = "Tokens that two windows share; without it half of a window's, and at most 128."
_QUESTIONS: Final = (
    {"question": "Who owns search-qa?", "context": "The platform team owns search-qa."},
    {"question": "Where is search-qa?", "context": "search-qa is in eu-west-1."},
)
_TASKS: Final[Mapping[str, Callable[[RequestLimits], Schema]]] = {
    QUESTION_ANSWERING: _question_answering,
    SEQUENCE_CLASSIFICATION: _sequence_classification,
    TOKEN_CLASSIFICATION: _token_classification,
    EMBEDDINGS: _embeddings,
}
