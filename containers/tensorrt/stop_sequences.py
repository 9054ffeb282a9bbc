"""The text of one row while it is generated, and where a stop text ends it.

A token is bytes, not text: a character can span tokens, and so can a stop text. So the text is
decoded token by token, in windows that begin and end between characters; what ends within one
waits for the rest of it.
"""

from collections.abc import Callable, Sequence
from typing import Final

# What decoders put where bytes are not UTF-8, which the first part of a character is not.
_REPLACEMENT_CHARACTER: Final = "\ufffd"


class GrowingText:
    """The text of a row so far; joined, the pieces are what decoding all tokens at once gives.

    Args:
        decode: gives the text of token ids.
    """

    def __init__(self, decode: Callable[[list[int]], str]) -> None:
        self._decode = decode
        # From the window's start up to `_shown` the text is known; a window, since some decoders
        # treat the first token's space differently from that of the following ones.
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
        """Returns the rest, a last character that is not whole included."""
        return self._decode(self._window)[len(self._decode(self._window[: self._shown])) :]


class AnswerText:
    """Collects a row's text up to the first of its stop texts; one per generation.

    The first is the one that is complete first, character by character: where it is cut does not
    depend on how the text falls into tokens. Of several that end with the same character the
    longest counts.

    Args:
        decode: gives the text of token ids.
        stop_texts: none of them empty.
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
        """Returns what became certain since the last time: no stop text can begin in it."""
        certain = len(self._text) if self.is_stopped else len(self._text) - self._uncertain()
        piece = self._text[self._taken : certain]
        self._taken = max(self._taken, certain)
        return piece

    def finish(self) -> str:
        """Returns the text before the first stop text, or all of it where there is none."""
        if not self.is_stopped:
            self._append(self._growing.finish())
        return self._text

    def take_rest(self) -> str:
        """Returns what `take` has not returned, after `finish`."""
        return self._text[self._taken :]

    def _append(self, piece: str) -> None:
        # No stop text is complete in what was there before; one may have begun in it.
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
