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

from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple, TypeAlias

from containers.serving.fields import Choice, Flag, Text, Texts, WholeNumber
from containers.serving.objects import Inputs, Object, OneOrMany

_AGGREGATION_STRATEGIES: Final = ("none", "simple", "first", "average", "max")
_SCORE_FUNCTIONS: Final = ("softmax", "sigmoid", "none")

_MOST_ANSWERS: Final = 100
_MOST_LABELS: Final = 10_000
# `transformers`' default; in tokens.
_DEFAULT_ANSWER_TOKENS: Final = 15
_LEAST_WINDOW_TOKENS: Final = 8
_OVERLAP: Final = "Tokens that two windows share; without it half of a window's, and at most 128."
_TRUNCATION: Final = "A text that is too long is cut off; otherwise it is an error."
_PARAMETERS: Final = "A parameter that is not known is an error."


@dataclass(frozen=True)
class RequestLimits:
    """The limits that an endpoint sets for a request.

    `sequence_length` is the longest bucket in tokens, special tokens included. `max_inputs` is the
    length of the queue. Tokens take about a hundred bytes for each of `max_characters` while they
    are made.
    """

    sequence_length: int
    max_inputs: int = 256
    max_characters: int = 200_000


def _longest(limits: RequestLimits) -> int:
    return limits.sequence_length


def _answer_tokens(limits: RequestLimits) -> int:
    return min(_DEFAULT_ANSWER_TOKENS, limits.sequence_length)


def _max_inputs(limits: RequestLimits) -> int:
    return limits.max_inputs


def _max_characters(limits: RequestLimits) -> int:
    return limits.max_characters


def _inputs_meaning(limits: RequestLimits) -> str:
    return (
        f"One or several. All windows together, of {limits.sequence_length} tokens, are at most "
        f"{limits.max_inputs}."
    )


_Texts: TypeAlias = Annotated[
    Inputs[str],
    OneOrMany(Text(max_characters=_max_characters), _max_inputs, is_required=True),
    _inputs_meaning,
]


class Question(NamedTuple):
    question: Annotated[str, Text(max_characters=_max_characters, is_required=True), ""]
    context: Annotated[str, Text(max_characters=_max_characters, is_required=True), ""]


class QuestionParameters(NamedTuple):
    top_k: Annotated[int, WholeNumber(1, _MOST_ANSWERS, default=1), "Answers to each question."]
    max_answer_len: Annotated[
        int, WholeNumber(1, _longest, default=_answer_tokens), "Longest answer, in tokens."
    ]
    max_question_len: Annotated[
        int | None,
        WholeNumber(1, _longest),
        "The question is cut off after that many tokens; without it one that leaves no room for "
        "the context is an error.",
    ]
    max_seq_len: Annotated[
        int,
        WholeNumber(_LEAST_WINDOW_TOKENS, _longest, default=_longest),
        "Longest window, in tokens, question and special tokens included.",
    ]
    doc_stride: Annotated[int | None, WholeNumber(0, _longest), _OVERLAP]
    handle_impossible_answer: Annotated[
        bool, Flag(default=False), 'Makes "no answer", an empty text, one.'
    ]
    align_to_words: Annotated[
        bool, Flag(default=True), "An answer begins and ends with whole words."
    ]


class QuestionRequest(NamedTuple):
    inputs: Annotated[
        Inputs[Question],
        OneOrMany(Object(Question, "Question"), _max_inputs, is_required=True),
        _inputs_meaning,
    ]
    parameters: Annotated[
        QuestionParameters,
        Object(QuestionParameters, "Parameters", noun="parameter"),
        _PARAMETERS,
    ]


class SequenceParameters(NamedTuple):
    top_k: Annotated[int, WholeNumber(1, _MOST_LABELS, default=1), "Labels of each text."]
    function_to_apply: Annotated[
        str | None,
        Choice(_SCORE_FUNCTIONS),
        "What makes scores of the model's outputs; without it what it was trained for.",
    ]
    truncation: Annotated[bool, Flag(default=False), _TRUNCATION]


class SequenceRequest(NamedTuple):
    inputs: _Texts
    parameters: Annotated[
        SequenceParameters,
        Object(SequenceParameters, "Parameters", noun="parameter"),
        _PARAMETERS,
    ]


class TokenParameters(NamedTuple):
    aggregation_strategy: Annotated[
        str,
        Choice(_AGGREGATION_STRATEGIES, default="simple"),
        "What makes entities of tokens.",
    ]
    ignore_labels: Annotated[
        tuple[str, ...],
        Texts(Text(min_characters=0), 0, _MOST_LABELS, default=("O",)),
        "Labels that are left out.",
    ]
    stride: Annotated[int | None, WholeNumber(0, _longest), _OVERLAP]


class TokenRequest(NamedTuple):
    inputs: _Texts
    parameters: Annotated[
        TokenParameters,
        Object(TokenParameters, "Parameters", noun="parameter"),
        _PARAMETERS,
    ]


class EmbeddingRequest(NamedTuple):
    """Texts to be embedded; the options stand beside `inputs`."""

    inputs: _Texts
    normalize: Annotated[
        bool | None,
        Flag(),
        "Vectors get length 1; without it what the model was trained for.",
    ]
    truncate: Annotated[bool, Flag(default=False), _TRUNCATION]
