"""Cuts long texts into windows: overlapping parts that each fit the model's longest bucket.

An answer that crosses the end of one window lies whole in the next, if it is no longer than the
overlap.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from containers.encoders.tokenization import Row, Template, TokenizedText
from containers.serving.errors import InvalidRequestError

# As in `transformers`' pipelines: half a window, but no more than this.
_LARGEST_DEFAULT_OVERLAP_TOKENS: Final = 128


@dataclass(frozen=True)
class Window:
    """A range of a text's tokens, and the row of the model that has them with special tokens."""

    row: Row = field(repr=False)
    tokens: range

    def columns(self) -> slice:
        return slice(self.row.first_column, self.row.first_column + len(self.tokens))


def token_windows(tokens: int, *, room: int, overlap: int) -> list[range]:
    """Returns the indices of a text's tokens in each of its overlapping windows.

    A text without tokens has one empty window, and the last window may be shorter. Each has `room`
    for tokens, and two neighbours share `overlap` of them, less than `room`.
    """
    if not 0 <= overlap < room:
        raise ValueError(f"an overlap of {overlap} in windows of {room}")
    ends = [room]
    while ends[-1] < tokens:
        ends.append(ends[-1] + room - overlap)
    return [range(end - room, min(end, tokens)) for end in ends]


def context_windows(
    template: Template,
    question: Sequence[int],
    context: TokenizedText,
    *,
    name: str,
    max_tokens: int,
    overlap: int | None,
) -> list[Window]:
    """Cuts a context into windows, each with the whole question before it; see `text_windows`.

    Raises `InvalidRequestError` if the question leaves no room, or the overlap takes all of it.
    """
    longest = max_tokens - template.special_tokens - 1
    if len(question) > longest:
        raise InvalidRequestError(
            f"{name}.question has {len(question)} tokens, which leave no room for the context in a "
            f"window of {max_tokens}: at most {longest} do; shorten it, or set max_question_len."
        )
    return text_windows(
        template,
        context,
        name=name,
        max_tokens=max_tokens,
        overlap=overlap,
        before=(question,),
        parameter="doc_stride",
    )


def text_windows(
    template: Template,
    text: TokenizedText,
    *,
    name: str,
    max_tokens: int,
    overlap: int | None,
    before: Sequence[Sequence[int]] = (),
    parameter: str = "stride",
) -> list[Window]:
    """Cuts a text, which may be empty, into windows of at most `max_tokens`, everything included.

    `overlap` counts the tokens that two windows share; None takes half a window, but no more than
    `transformers` does. The texts `before` are whole in each window. `name` is the path of the
    input in the request, and `parameter` the one that sets the overlap, both for messages. Raises
    `InvalidRequestError` if the overlap takes all of a window.
    """
    room = max_tokens - template.special_tokens - sum(map(len, before))
    if overlap is None:
        overlap = min(room // 2, _LARGEST_DEFAULT_OVERLAP_TOKENS)
    elif overlap >= room and len(text) > room:
        raise InvalidRequestError(
            f"{parameter}={overlap} leaves nothing new in a window of {name}, which holds {room} "
            f"tokens of the text: it must be below {room}."
        )
    return [
        Window(template.row(*before, text.token_ids[tokens.start : tokens.stop]), tokens)
        for tokens in token_windows(len(text), room=room, overlap=min(overlap, room - 1))
    ]


def whole_text(
    template: Template,
    text: TokenizedText,
    *,
    name: str,
    parameter: str,
    max_tokens: int,
    truncate: bool,
) -> Row:
    """Returns a text, which may be empty, as one row of at most `max_tokens`.

    Raises `InvalidRequestError` if the text is longer, and `truncate` is false. The message has the
    path `name` of the input, and the `parameter` that asks to cut texts off.
    """
    room = max_tokens - template.special_tokens
    if len(text) > room and not truncate:
        raise InvalidRequestError(
            f"{name} has {len(text)} tokens; the limit is {room}. Shorten it, or set {parameter} "
            "to true."
        )
    return template.row(text.token_ids[:room])


def kept_tokens(windows: Sequence[range]) -> list[range]:
    """Returns, for each window, the tokens whose results are taken from it.

    They lie farther from its edges than from its neighbours' edges. Every token is in exactly one
    range.
    """
    firsts = [0]
    for before, after in pairwise(windows):
        # The first token that is closer to the end of `before` than to the start of `after`.
        firsts.append((after.start + before.stop + 1) // 2)
    return [range(*ends) for ends in pairwise([*firsts, windows[-1].stop])]
