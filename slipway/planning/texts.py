"""How the container of a family takes texts, and answers them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass


class NotTextsError(Exception):
    """An answer has no texts; the message says why."""


@dataclass(frozen=True)
class TextsRequest:
    """A request of texts.

    Args:
        body: what is sent.
        content_type: of the body.
    """

    body: bytes
    content_type: str


class TextProtocol(ABC):
    """The protocol of a container whose model takes texts and answers texts.

    Args:
        content_types: forms of a request, without parameters; the first one is the default.
    """

    def __init__(self, content_types: Sequence[str]) -> None:
        self.content_types = tuple(content_types)

    @abstractmethod
    def request(self, texts: Sequence[str], content_type: str) -> TextsRequest:
        """Returns the request.

        Args:
            texts: at least one.
            content_type: one of `content_types`.
        """

    @abstractmethod
    def answers(self, body: bytes, content_type: str) -> list[str]:
        """Returns the texts of an answer.

        Args:
            body: of the answer.
            content_type: of the body, with its parameters.

        Raises:
            NotTextsError: it has none.
        """
