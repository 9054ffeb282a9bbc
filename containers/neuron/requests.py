"""The requests that clients send: Hugging Face's tasks, checked in full.

- question answering: `{"inputs": {"question": TEXT, "context": TEXT}, "parameters": {...}}`
- sequence classification: `{"inputs": TEXT, "parameters": {"top_k", "function_to_apply"}}`
- token classification: `{"inputs": TEXT, "parameters": {"aggregation_strategy", ...}}`
- embeddings: `{"inputs": TEXT, "normalize": true, "truncate": false}`

`inputs` may also be an array in every task. Names and meanings follow the specifications at
https://huggingface.co/docs/inference-providers/tasks and `transformers`' pipelines. Two rules are
stricter. An unknown field or parameter is an error. A text that is too long is an error too, unless
the request asks to cut it off.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from containers.neuron.request_fields import FieldReader, Problems, text_problem
from containers.serving.json_requests import json_type_name, parse_json_object

AGGREGATION_STRATEGIES: Final = ("none", "simple", "first", "average", "max")
SCORE_FUNCTIONS: Final = ("softmax", "sigmoid", "none")

MOST_ANSWERS: Final = 100
MOST_LABELS: Final = 10_000
# `transformers`' default; in tokens.
DEFAULT_ANSWER_TOKENS: Final = 15
LEAST_WINDOW_TOKENS: Final = 8


@dataclass(frozen=True)
class RequestLimits:
    """The limits that an endpoint sets for a request.

    Attributes:
        sequence_length: tokens of the longest bucket, special tokens included.
        max_inputs: most texts of a request; the length of the queue.
        max_characters: longest text. Tokens take about a hundred bytes each while they are made.
    """

    sequence_length: int
    max_inputs: int = 256
    max_characters: int = 200_000


@dataclass(frozen=True)
class Question:
    """A question, and the text that holds the answer."""

    question: str
    context: str


@dataclass(frozen=True)
class QuestionRequest:
    """Questions, and the settings of their answers.

    Attributes:
        questions: at least one.
        is_list: whether the questions came as an array; the answer is then an array too.
        top_k: answers to each question.
        max_answer_tokens: longest answer, in tokens.
        max_question_tokens: tokens after which a question is cut off; None refuses a question that
            leaves no room for the context.
        max_window_tokens: longest window, special tokens and question included.
        overlap_tokens: tokens of the context that two windows share; None is half of a window's,
            and 128 at most.
        handle_impossible_answer: whether "no answer", an empty text, can be an answer.
        align_to_words: whether an answer begins and ends with whole words.
    """

    questions: tuple[Question, ...]
    is_list: bool
    top_k: int
    max_answer_tokens: int
    max_question_tokens: int | None
    max_window_tokens: int
    overlap_tokens: int | None
    handle_impossible_answer: bool
    align_to_words: bool


@dataclass(frozen=True)
class SequenceRequest:
    """Texts to be classified.

    Attributes:
        texts: at least one.
        is_list: whether the texts came as an array.
        top_k: labels of each text.
        score_function: function that turns logits into scores; None is the function that the model
            was trained for.
        truncate: whether a text that is too long is cut off.
    """

    texts: tuple[str, ...]
    is_list: bool
    top_k: int
    score_function: str | None
    truncate: bool


@dataclass(frozen=True)
class TokenRequest:
    """Texts whose tokens are to be classified.

    Attributes:
        texts: at least one.
        is_list: whether the texts came as an array.
        aggregation_strategy: one of `AGGREGATION_STRATEGIES`.
        ignore_labels: labels that are not shown.
        overlap_tokens: tokens that two windows of a long text share; None is half of a window's,
            and 128 at most.
    """

    texts: tuple[str, ...]
    is_list: bool
    aggregation_strategy: str
    ignore_labels: tuple[str, ...]
    overlap_tokens: int | None


@dataclass(frozen=True)
class EmbeddingRequest:
    """Texts to be embedded.

    Attributes:
        texts: at least one.
        is_list: whether the texts came as an array.
        normalize: whether the vectors get length 1; None does as the model was trained.
        truncate: whether a text that is too long is cut off.
    """

    texts: tuple[str, ...]
    is_list: bool
    normalize: bool | None
    truncate: bool


def parse_question_request(body: bytes, limits: RequestLimits) -> QuestionRequest:
    """Parses the body of a question answering request.

    Raises:
        InvalidRequestError: the message names every problem.
    """
    problems = Problems()
    document, fields = _document(body, problems)
    parameters = _parameters(document, fields, problems)
    questions, is_list = _questions(document, fields, limits, problems)
    longest = limits.sequence_length
    request = QuestionRequest(
        questions=questions,
        is_list=is_list,
        top_k=parameters.whole_number("top_k", 1, MOST_ANSWERS, default=1),
        max_answer_tokens=parameters.whole_number(
            "max_answer_len", 1, longest, default=min(DEFAULT_ANSWER_TOKENS, longest)
        ),
        max_question_tokens=parameters.optional_whole_number("max_question_len", 1, longest),
        max_window_tokens=parameters.whole_number(
            "max_seq_len", LEAST_WINDOW_TOKENS, longest, default=longest
        ),
        overlap_tokens=parameters.optional_whole_number("doc_stride", 0, longest),
        handle_impossible_answer=parameters.flag("handle_impossible_answer", default=False),
        align_to_words=parameters.flag("align_to_words", default=True),
    )
    _finish(fields, parameters, problems)
    return request


def parse_sequence_request(body: bytes, limits: RequestLimits) -> SequenceRequest:
    """Parses the body of a sequence classification request.

    Raises:
        InvalidRequestError: the message names every problem.
    """
    problems = Problems()
    document, fields = _document(body, problems)
    parameters = _parameters(document, fields, problems)
    texts, is_list = _texts(document, fields, limits, problems)
    score_function = parameters.choice("function_to_apply", SCORE_FUNCTIONS, default="softmax")
    request = SequenceRequest(
        texts=texts,
        is_list=is_list,
        top_k=parameters.whole_number("top_k", 1, MOST_LABELS, default=1),
        score_function=score_function if parameters.is_given("function_to_apply") else None,
        truncate=parameters.flag("truncation", default=False),
    )
    _finish(fields, parameters, problems)
    return request


def parse_token_request(body: bytes, limits: RequestLimits) -> TokenRequest:
    """Parses the body of a token classification request.

    Raises:
        InvalidRequestError: the message names every problem.
    """
    problems = Problems()
    document, fields = _document(body, problems)
    parameters = _parameters(document, fields, problems)
    texts, is_list = _texts(document, fields, limits, problems)
    ignored = parameters.optional_texts("ignore_labels", max_texts=MOST_LABELS)
    request = TokenRequest(
        texts=texts,
        is_list=is_list,
        aggregation_strategy=parameters.choice(
            "aggregation_strategy", AGGREGATION_STRATEGIES, default="simple"
        ),
        ignore_labels=("O",) if ignored is None else ignored,
        overlap_tokens=parameters.optional_whole_number("stride", 0, limits.sequence_length),
    )
    _finish(fields, parameters, problems)
    return request


def parse_embedding_request(body: bytes, limits: RequestLimits) -> EmbeddingRequest:
    """Parses the body of an embedding request, whose options stand beside `inputs`.

    Raises:
        InvalidRequestError: the message names every problem.
    """
    problems = Problems()
    document, fields = _document(body, problems)
    texts, is_list = _texts(document, fields, limits, problems)
    normalize = fields.flag("normalize", default=True)
    request = EmbeddingRequest(
        texts=texts,
        is_list=is_list,
        normalize=normalize if fields.is_given("normalize") else None,
        truncate=fields.flag("truncate", default=False),
    )
    _finish(fields, None, problems)
    return request


# Any: JSON.
def _document(body: bytes, problems: Problems) -> tuple[dict[str, Any], FieldReader]:
    document = parse_json_object(body)
    return document, FieldReader(document, problems, kind="field")


def _parameters(
    document: Mapping[str, Any], fields: FieldReader, problems: Problems
) -> FieldReader:
    values = document.get("parameters", {})
    if not isinstance(values, dict):
        problems.add(f"parameters must be an object, not {json_type_name(values)}.")
        values = {}
    fields.know("inputs", "parameters")
    return FieldReader(values, problems, kind="parameter")


def _finish(fields: FieldReader, parameters: FieldReader | None, problems: Problems) -> None:
    fields.refuse_unknown()
    if parameters is not None:
        parameters.refuse_unknown()
    problems.finish()


def _texts(
    document: Mapping[str, Any], fields: FieldReader, limits: RequestLimits, problems: Problems
) -> tuple[tuple[str, ...], bool]:
    values, is_list = _inputs(document, fields, limits, problems, "a string")
    texts: list[str] = []
    for name, value in values:
        problem = text_problem(name, value, max_characters=limits.max_characters)
        if problem is not None:
            problems.add(problem)
        else:
            texts.append(value)
    return tuple(texts), is_list


def _questions(
    document: Mapping[str, Any], fields: FieldReader, limits: RequestLimits, problems: Problems
) -> tuple[tuple[Question, ...], bool]:
    expected = "an object with question and context"
    values, is_list = _inputs(document, fields, limits, problems, expected)
    questions: list[Question] = []
    for name, value in values:
        if not isinstance(value, dict):
            problems.add(f"{name} must be {expected}, not {json_type_name(value)}.")
            continue
        reader = FieldReader(value, problems, kind="field", where=f"{name}.")
        questions.append(
            Question(
                question=reader.text("question", max_characters=limits.max_characters),
                context=reader.text("context", max_characters=limits.max_characters),
            )
        )
        reader.refuse_unknown()
    return tuple(questions), is_list


def _inputs(
    document: Mapping[str, Any],
    fields: FieldReader,
    limits: RequestLimits,
    problems: Problems,
    expected: str,
) -> tuple[list[tuple[str, Any]], bool]:
    """Returns the values under `inputs`, each with its name, and whether they are in an array."""
    fields.know("inputs")
    if "inputs" not in document:
        problems.add(f"The field inputs is missing: {expected}, or an array of them.")
        return [], False
    inputs = document["inputs"]
    if not isinstance(inputs, list):
        return [("inputs", inputs)], False
    if not inputs:
        problems.add(f"inputs is an empty array: it must hold {expected}.")
    if len(inputs) > limits.max_inputs:
        problems.add(
            f"inputs holds {len(inputs)} texts: it must hold 1 to {limits.max_inputs}, the "
            "endpoint's max_queue_length."
        )
        return [], True
    return [(f"inputs[{index}]", value) for index, value in enumerate(inputs)], True
