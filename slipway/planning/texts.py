"""How the container of a family takes texts, and answers them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass


class NotTextsError(Exception):
    """An answer has no texts; the message says why."""


@dataclass(frozen=True)
class TextsRequest:
    body: bytes
    content_type: str


class TextProtocol(ABC):
    """The protocol of a container whose model takes texts and answers texts.

    The first of `content_types`, which have no parameters, is the default.
    """

    def __init__(self, content_types: Sequence[str]) -> None:
        self.content_types = tuple(content_types)

    @abstractmethod
    def request(self, texts: Sequence[str], content_type: str) -> TextsRequest:
        """Returns the request of one text at least, in one of `content_types`."""

    @abstractmethod
    def answers(self, body: bytes, content_type: str) -> list[str]:
        """Returns the texts of an answer, whose content type has its parameters.

        Raises:
            NotTextsError: it has none.
        """
