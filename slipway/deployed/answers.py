"""An answer of AWS, out of which one value after the other is taken.

What nothing takes has no field in a config, and is listed. So a setting that AWS adds one day is
listed too, and never dropped.
"""

import copy
import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

_ABSENT: tuple[Any, ...] = (None, {}, [], "")


class Answer:
    """A copy of a structure, without names that tell nothing of a deployment, such as times."""

    def __init__(self, content: Mapping[str, Any], without: Collection[str] = ()) -> None:
        kept = {name: value for name, value in content.items() if name not in without}
        self._left: dict[str, Any] = copy.deepcopy(kept)

    def take(self, *path: str) -> Any:
        """Removes a value and returns it; None without it. The outermost structure comes first."""
        section: Any = self._left
        for name in path[:-1]:
            section = section.get(name)
            if not isinstance(section, dict):
                return None
        return section.pop(path[-1], None)

    def fields(self, paths: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
        found = {field: self.take(*path) for field, path in paths.items()}
        return {field: value for field, value in found.items() if value is not None}

    def put(self, value: Any, *path: str) -> None:
        """Puts a value back that turned out to have no field, so that it is listed."""
        section = self._left
        for name in path[:-1]:
            section = section.setdefault(name, {})
        section[path[-1]] = value

    def rest(self) -> Iterator[tuple[str, str]]:
        yield from _flat(self._left, "")


def _flat(section: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for name, value in section.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        # A switch that is off is the default everywhere.
        elif value is not False and value not in _ABSENT:
            yield f"{prefix}{name}", shown(value)


def shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
