"""The text that samples learn from: AWS API documentation shipped inside botocore.

botocore (Apache-2.0) carries one `service-2.json.gz` per service and API version; their
`documentation` fields are HTML written by people. This module turns them into distinct sentences
and splits these into a training and a held-out set. It reads the installed package and nothing
else: no network, no clock, no randomness, so one botocore version gives one corpus.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path

import botocore

# One sentence in this many is held out.
HELD_OUT_ONE_IN = 50
MINIMUM_CHARACTERS = 20
MAXIMUM_CHARACTERS = 400
MINIMUM_WORDS = 4

_INLINE_TAGS = frozenset({"a", "b", "code", "em", "i", "strong", "span", "sub", "sup", "u"})
# What is inside these is a listing, not prose.
_SKIPPED_TAGS = frozenset({"pre", "script", "style", "table"})
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])")
# A full stop after one of these does not end a sentence.
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|approx|Inc|No|cf)\.$")
_WORD = re.compile(r"[a-z0-9]+")
# Generated filler that some services ship where a description is missing.
_FILLER = "Placeholder documentation"


@dataclass(frozen=True)
class Corpus:
    """Distinct sentences, split so that no held-out sentence is also a training sentence.

    Attributes:
        training: Sentences to learn from, in the order in which the sorted services hold them.
        held_out: Sentences for measuring only.
    """

    training: tuple[str, ...]
    held_out: tuple[str, ...]


class _Prose(HTMLParser):
    """Collects the prose of one documentation string; block tags become line breaks."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._skipping = 0

    def handle_starttag(
        self,
        tag: str,
        attrs: list[tuple[str, str | None]],  # noqa: ARG002  (HTMLParser passes it)
    ) -> None:
        if tag in _SKIPPED_TAGS:
            self._skipping += 1
        elif tag not in _INLINE_TAGS:
            self.pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in _SKIPPED_TAGS:
            self._skipping = max(0, self._skipping - 1)
        elif tag not in _INLINE_TAGS:
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._skipping:
            # Line breaks in the source wrap lines; only tags separate paragraphs.
            self.pieces.append(re.sub(r"\s+", " ", data))


def paragraphs(documentation: str) -> list[str]:
    """The paragraphs of one HTML documentation string, as plain text with single spaces."""
    parser = _Prose()
    parser.feed(documentation)
    parser.close()
    lines = "".join(parser.pieces).split("\n")
    return [text for text in (re.sub(r"\s+", " ", line).strip() for line in lines) if text]


def sentences(paragraph: str) -> list[str]:
    """Splits a paragraph at sentence ends, and not after common abbreviations."""
    found: list[str] = []
    for piece in _SENTENCE_END.split(paragraph):
        if found and _ABBREVIATION.search(found[-1]):
            found[-1] = f"{found[-1]} {piece}"
        else:
            found.append(piece)
    return found


def is_prose(sentence: str) -> bool:
    """Whether a sentence reads as English text rather than as an identifier or a listing."""
    if not MINIMUM_CHARACTERS <= len(sentence) <= MAXIMUM_CHARACTERS:
        return False
    if not sentence.isascii() or not sentence[0].isupper():
        return False
    if sentence.count(" ") + 1 < MINIMUM_WORDS or sentence.startswith(_FILLER):
        return False
    letters_and_spaces = sum(character.isalpha() or character == " " for character in sentence)
    return letters_and_spaces >= 0.85 * len(sentence)


def sentence_key(sentence: str) -> str:
    """What two sentences share when they differ only in case, spacing or punctuation."""
    return " ".join(_WORD.findall(sentence.lower()))


def is_held_out(key: str) -> bool:
    """The split: a function of the key alone, so a sentence can only ever be on one side."""
    digest = hashlib.sha256(key.encode()).digest()
    return int.from_bytes(digest[:8], "big") % HELD_OUT_ONE_IN == 0


def documentation_strings(node: object) -> Iterator[str]:
    """Every `documentation` string at any depth of a parsed service model."""
    if isinstance(node, dict):
        text = node.get("documentation")
        if isinstance(text, str):
            yield text
        for value in node.values():
            yield from documentation_strings(value)
    elif isinstance(node, list):
        for value in node:
            yield from documentation_strings(value)


def load_corpus(data_directory: Path | None = None) -> Corpus:
    """Reads the documentation of every service and splits its distinct sentences.

    Args:
        data_directory: botocore's `data` folder; the installed package's when None.
    """
    root = data_directory or Path(botocore.__file__).parent / "data"
    seen_documents: set[str] = set()
    seen_keys: set[str] = set()
    training: list[str] = []
    held_out: list[str] = []
    for path in sorted(root.glob("*/*/service-2.json.gz")):
        for document in documentation_strings(json.loads(gzip.decompress(path.read_bytes()))):
            if document in seen_documents:
                continue
            seen_documents.add(document)
            for paragraph in paragraphs(document):
                for sentence in sentences(paragraph):
                    key = sentence_key(sentence)
                    if key in seen_keys or not is_prose(sentence):
                        continue
                    seen_keys.add(key)
                    (held_out if is_held_out(key) else training).append(sentence)
    return Corpus(training=tuple(training), held_out=tuple(held_out))


def is_recorded_version(metrics_path: Path) -> bool:
    """Returns whether a measurement used the installed botocore; prints the remedy if it did not.

    Args:
        metrics_path: the sample's metrics.json.
    """
    here = version("botocore")
    there = json.loads(metrics_path.read_text())["versions"]["botocore"]
    if here != there:
        print(
            f"botocore {here} is installed, and the held-out text is that of botocore {there}: "
            f"run pip install botocore=={there}",
            file=sys.stderr,
        )
    return here == there
