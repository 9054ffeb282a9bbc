"""Turns prompts into tokens, and refuses far too long prompts before they cost memory and time.

A tokenizer takes some 270 bytes and two microseconds for each byte of text: 6 MB would delay all
requests by fifteen seconds and take more than a gigabyte, only to be refused afterwards. A text
that cannot fit is refused by its length alone. Texts are encoded a few at a time, up to the first
that is too long.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tokenizers import Tokenizer

from containers.serving.errors import InvalidRequestError
from containers.serving.model_files import read_tokenizer

_ENCODED_TOGETHER_BYTES: Final = 256 * 1024
_BYTE_VALUES: Final = 256


class PromptTokenizer:
    """The model's tokenizer, which must neither truncate nor pad."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._longest_token_bytes = longest_token_bytes(json.loads(tokenizer.to_str()))
        self.decode: Callable[[list[int]], str] = tokenizer.decode
        self.vocabulary_size: int = tokenizer.get_vocab_size()

    @classmethod
    def read(cls, path: Path) -> "PromptTokenizer":
        """Reads a tokenizer.json; a `ModelLoadError` says that the file is none."""
        return cls(read_tokenizer(path))

    def encode(
        self, texts: Sequence[str], *, max_tokens: int, adds_special_tokens: bool = True
    ) -> list[tuple[int, ...]]:
        """Returns the tokens of each text.

        An `InvalidRequestError` names the first that has no token, or more than `max_tokens`.
        """
        for index, text in enumerate(texts):
            least_tokens = self._least_tokens(text)
            if least_tokens > max_tokens:
                raise InvalidRequestError(
                    f"Input {index} has at least {least_tokens} tokens; the limit is {max_tokens}."
                )
        token_ids: list[tuple[int, ...]] = []
        for group in _groups(texts):
            for encoding in self._tokenizer.encode_batch(
                group, add_special_tokens=adds_special_tokens
            ):
                index = len(token_ids)
                token_ids.append(tuple(encoding.ids))
                if not token_ids[-1]:
                    raise InvalidRequestError(f"Input {index} holds no token that the model knows.")
                if len(token_ids[-1]) > max_tokens:
                    raise InvalidRequestError(
                        f"Input {index} has {len(token_ids[-1])} tokens; the limit is {max_tokens}."
                    )
        return token_ids

    def _least_tokens(self, text: str) -> int:
        if self._longest_token_bytes is None:
            return 0
        return math.ceil(len(text.encode()) / self._longest_token_bytes)


# Any: JSON.
def longest_token_bytes(document: Mapping[str, Any]) -> int | None:
    """Returns the most bytes of text that one token can stand for; None if text may vanish before.

    None vanishes with a byte-level tokenizer that has all bytes in its vocabulary and changes no
    text beforehand. Its added tokens must not take the spaces beside them.
    """
    model = document["model"]
    added = document.get("added_tokens") or []
    # In such a vocabulary each character stands for a byte.
    names = model.get("vocab", {})
    is_certain = (
        document.get("normalizer") is None
        and (document.get("pre_tokenizer") or {}).get("type") == "ByteLevel"
        and model.get("type") == "BPE"
        and sum(len(name) == 1 for name in names) >= _BYTE_VALUES
        and not any(token["lstrip"] or token["rstrip"] for token in added)
    )
    if not is_certain:
        return None
    return max(*map(len, names), *(len(token["content"].encode()) for token in added), 1)


def _groups(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yields the texts in order, in groups of bounded size; each has at least one text."""
    group: list[str] = []
    size_bytes = 0
    for text in texts:
        size_bytes += len(text.encode())
        if group and size_bytes > _ENCODED_TOGETHER_BYTES:
            yield group
            group, size_bytes = [], len(text.encode())
        group.append(text)
    yield group
