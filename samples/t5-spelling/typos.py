"""The typing errors that the model learns to correct: one slip of one finger, or a wrong vowel."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

# Shorter words are never misspelt: too many of their typos are other words.
SHORTEST_MISSPELT_WORD: Final = 4
# One pair of a word and its typo in this many is held out.
HELD_OUT_ONE_IN: Final = 10

VOWELS: Final = "aeiou"
_ROWS: Final = ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")


def _neighbours() -> dict[str, str]:
    """Returns the letters around each key of a US keyboard, whose rows are staggered."""
    places = {
        key: (row, column) for row, keys in enumerate(_ROWS) for column, key in enumerate(keys)
    }
    steps = ((0, -1), (0, 1), (-1, 0), (-1, 1), (1, -1), (1, 0))
    keys = {place: key for key, place in places.items()}
    return {
        key: "".join(
            keys[row + down, column + right]
            for down, right in steps
            if (row + down, column + right) in keys
        )
        for key, (row, column) in places.items()
    }


NEIGHBOURS: Final = _neighbours()


def _swaps(word: str) -> Iterator[str]:
    for at in range(len(word) - 1):
        yield word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def _omissions(word: str) -> Iterator[str]:
    for at in range(len(word)):
        yield word[:at] + word[at + 1 :]


def _doublings(word: str) -> Iterator[str]:
    for at in range(len(word)):
        yield word[: at + 1] + word[at:]


def _neighbour_keys(word: str) -> Iterator[str]:
    for at, letter in enumerate(word):
        for key in NEIGHBOURS[letter]:
            yield word[:at] + key + word[at + 1 :]


def _extra_keys(word: str) -> Iterator[str]:
    """Yields the word with two keys hit at once."""
    for at, letter in enumerate(word):
        for key in NEIGHBOURS[letter]:
            yield word[:at] + key + word[at:]
            yield word[: at + 1] + key + word[at + 1 :]


def _vowels(word: str) -> Iterator[str]:
    for at, letter in enumerate(word):
        if letter in VOWELS:
            for vowel in VOWELS.replace(letter, ""):
                yield word[:at] + vowel + word[at + 1 :]


# Each kind, and its share of the typos.
KINDS: Final = {
    "omission": (_omissions, 0.25),
    "swap": (_swaps, 0.25),
    "neighbour key": (_neighbour_keys, 0.2),
    "doubling": (_doublings, 0.1),
    "extra key": (_extra_keys, 0.1),
    "vowel": (_vowels, 0.1),
}


def typos(word: str, kind: str) -> list[str]:
    """Returns the distinct typos of one kind, in the order of their place in the word.

    Args:
        word: lower-case letters and digits.
        kind: one of `KINDS`.
    """
    makers, _ = KINDS[kind]
    return [typo for typo in dict.fromkeys(makers(word)) if typo != word]


def is_held_out(word: str, typo: str) -> bool:
    """Returns whether training may not have this typo of this word; a function of both alone."""
    digest = hashlib.sha256(f"{word} {typo}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % HELD_OUT_ONE_IN == 0
