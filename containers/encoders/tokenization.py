"""Turns texts into tokens, and tokens into rows of the model, special tokens included.

A text becomes tokens once, whole and without special tokens; windows are cut out of these tokens. A
template puts the special tokens around them. It is read from the tokenizer itself, so BERT's `[CLS]
A [SEP] B [SEP]` and RoBERTa's `<s> A </s></s> B </s>` need no special cases.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tokenizers import Tokenizer

from containers.serving.model_files import read_tokenizer
from containers.serving.predictor import ModelLoadError

# Becomes a token in every vocabulary, in the worst case the unknown token.
_PROBE: Final = "a"


@dataclass(frozen=True)
class TokenizedText:
    """A text and its tokens.

    Attributes:
        text: unchanged, as the client sent it.
        token_ids: without special tokens.
        spans: for each token, the index of its first character in `text` and of the character after
            its last.
        words: for each token, the number of its word, as the tokenizer splits words; None if it
            belongs to no word.
    """

    text: str = field(repr=False)
    token_ids: tuple[int, ...] = field(repr=False)
    spans: tuple[tuple[int, int], ...] = field(repr=False)
    words: tuple[int | None, ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.token_ids)


@dataclass(frozen=True)
class Row:
    """The tokens of one row of a batch, special tokens included, before padding.

    Their types are 0 for the first text and 1 for the second. `first_column` is that of the decoded
    text, which is the context or the only text.
    """

    token_ids: tuple[int, ...] = field(repr=False)
    type_ids: tuple[int, ...] = field(repr=False)
    first_column: int

    def __len__(self) -> int:
        return len(self.token_ids)


@dataclass(frozen=True)
class _Piece:
    token_ids: tuple[int, ...] = ()
    type_ids: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.token_ids)


@dataclass(frozen=True)
class Template:
    """The special tokens before the first text and after each text, and the type of each text."""

    pieces: tuple[_Piece, ...]
    text_types: tuple[int, ...]

    @property
    def special_tokens(self) -> int:
        return sum(map(len, self.pieces))

    def row(self, *texts: Sequence[int]) -> Row:
        """Returns the row of as many texts as the template has; the last text is decoded."""
        token_ids, type_ids = list(self.pieces[0].token_ids), list(self.pieces[0].type_ids)
        first_column = 0
        for text, text_type, after in zip(texts, self.text_types, self.pieces[1:], strict=True):
            first_column = len(token_ids)
            token_ids += [*text, *after.token_ids]
            type_ids += [*[text_type] * len(text), *after.type_ids]
        return Row(tuple(token_ids), tuple(type_ids), first_column)


class TextTokenizer:
    """The model's tokenizer, which must neither truncate nor pad; several threads may use it."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.vocabulary_size: int = tokenizer.get_vocab_size()
        self.single = _template(tokenizer.encode(_PROBE), texts=1)
        self.pair = _template(tokenizer.encode(_PROBE, _PROBE), texts=2)

    @classmethod
    def read(cls, path: Path) -> "TextTokenizer":
        """Reads a tokenizer.json, or raises `ModelLoadError` if it is none, or not an encoder's."""
        return cls(read_tokenizer(path))

    def tokenize(self, text: str) -> TokenizedText:
        """Returns the tokens of a text; a text of spaces may have none."""
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return TokenizedText(
            text=text,
            token_ids=tuple(encoding.ids),
            spans=tuple(encoding.offsets),
            words=tuple(encoding.word_ids),
        )


# Any: the binding's Encoding.
def _template(encoding: Any, *, texts: int) -> Template:
    pieces: list[tuple[list[int], list[int]]] = [([], [])]
    text_types: list[int] = []
    for token_id, type_id, text in zip(
        encoding.ids, encoding.type_ids, encoding.sequence_ids, strict=True
    ):
        if text is None:
            pieces[-1][0].append(token_id)
            pieces[-1][1].append(type_id)
        elif text == len(text_types):
            text_types.append(type_id)
            pieces.append(([], []))
    if len(text_types) != texts or not pieces[0][0]:
        raise ModelLoadError(
            "the tokenizer puts no special token before a text, as an encoder's does: take the "
            "tokenizer.json that the checkpoint came with"
        )
    return Template(
        tuple(_Piece(tuple(ids), tuple(types)) for ids, types in pieces), tuple(text_types)
    )
