"""The text of one row while it is generated, and where a stop text ends it.

A token is bytes, not text: a character can span tokens, and so can a stop text. The text is
therefore decoded token by token, in windows that begin and end between characters. An incomplete
character waits for its other tokens.
"""

from collections.abc import Callable, Sequence
from typing import Final

# Decoders put this character in place of bytes that are not UTF-8, such as the first part of a
# character.
_REPLACEMENT_CHARACTER: Final = "\ufffd"


class GrowingText:
    """The text of a row so far; the joined pieces equal the text of all tokens decoded at once."""

    def __init__(self, decode: Callable[[list[int]], str]) -> None:
        self._decode = decode
        # The text is known from the window's start up to `_shown`. A window is decoded, since some
        # decoders treat the space of the first token differently from later ones.
        self._window: list[int] = []
        self._shown = 0

    def add(self, token: int) -> str:
        """Returns the text that `token` completes; "" in the middle of a character."""
        self._window.append(token)
        text = self._decode(self._window)
        if text.endswith(_REPLACEMENT_CHARACTER):
            return ""
        piece = text[len(self._decode(self._window[: self._shown])) :]
        self._window = self._window[self._shown :]
        self._shown = len(self._window)
        return piece

    def finish(self) -> str:
        """Returns the rest, including an incomplete last character."""
        return self._decode(self._window)[len(self._decode(self._window[: self._shown])) :]


class AnswerText:
    """Collects a row's text up to the first of its stop texts; one object per generation.

    The first stop text is the text that is complete first, character by character. The cut
    therefore does not depend on how the text falls into tokens. If several stop texts end with the
    same character, the longest counts. No stop text is empty.
    """

    def __init__(self, decode: Callable[[list[int]], str], stop_texts: Sequence[str]) -> None:
        self._growing = GrowingText(decode)
        self._stop_texts = stop_texts
        self._longest = max((len(stop_text) for stop_text in stop_texts), default=0)
        self._text = ""
        self._taken = 0
        self.is_stopped = False

    def add(self, token: int) -> bool:
        """Takes the next token; returns whether a stop text is now complete."""
        self._append(self._growing.add(token))
        return self.is_stopped

    def take(self) -> str:
        """Returns the new text in which no stop text can begin any more."""
        certain = len(self._text) if self.is_stopped else len(self._text) - self._uncertain()
        piece = self._text[self._taken : certain]
        self._taken = max(self._taken, certain)
        return piece

    def finish(self) -> str:
        """Returns the text before the first stop text, or all of it if there is none."""
        if not self.is_stopped:
            self._append(self._growing.finish())
        return self._text

    def take_rest(self) -> str:
        """Returns the text that `take` has not returned; called after `finish`."""
        return self._text[self._taken :]

    def _append(self, piece: str) -> None:
        # The earlier text holds no complete stop text, but one may have begun in it.
        searched_from = max(0, len(self._text) - self._longest + 1)
        self._text += piece
        found = [
            (start + len(stop_text), start)
            for stop_text in self._stop_texts
            if (start := self._text.find(stop_text, searched_from)) >= 0
        ]
        if found:
            _, start = min(found)
            self._text = self._text[:start]
            self.is_stopped = True

    def _uncertain(self) -> int:
        """Returns the length of the longest end of the text that begins a stop text."""
        lengths = range(min(self._longest - 1, len(self._text)), 0, -1)
        beginnings = (
            length
            for length in lengths
            if any(stop_text.startswith(self._text[-length:]) for stop_text in self._stop_texts)
        )
        return next(beginnings, 0)
