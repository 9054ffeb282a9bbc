"""The problems of a request, which are collected and reported at once."""

from typing import Final

from containers.serving.errors import InvalidRequestError

# Longest part of a client's string that a problem shows.
LONGEST_SHOWN_CHARACTERS: Final = 100
# More problems help nobody, and the answer could become as large as the request.
_MOST_PROBLEMS_SHOWN: Final = 10


class Problems:
    """The problems of one request, each a sentence that names the field."""

    def __init__(self) -> None:
        self._fields: set[str] = set()
        self._shown: list[str] = []
        self._count = 0

    @property
    def are_too_many(self) -> bool:
        """Returns whether a further problem is only counted."""
        return self._count >= _MOST_PROBLEMS_SHOWN

    def add(self, path: str, sentence: str) -> None:
        self._fields.add(path.partition("[")[0])
        if not self.are_too_many:
            self._shown.append(sentence)
        self._count += 1

    def concern(self, *names: str) -> bool:
        return not self._fields.isdisjoint(names)

    def finish(self) -> None:
        """Raises `InvalidRequestError` with up to ten problems, if there were any."""
        if self._shown:
            others = self._count - len(self._shown)
            more = [f"And {others} more problems."] if others else []
            raise InvalidRequestError(" ".join([*self._shown, *more]))
