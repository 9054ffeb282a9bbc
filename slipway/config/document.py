"""Reads YAML and remembers the position of every field.

PyYAML's loader would forget positions, and the last of two equal keys would win silently. This
module walks the node graph instead, so that a problem found later can name line and column.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

import yaml

from slipway.codes.code import Code
from slipway.config.encoding import decode
from slipway.config.scalars import Scalars, readings, resolve_exponents
from slipway.errors import FieldPath, Kind, Location, Problem, UserError

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:  # PyYAML built without libyaml: slower, same result
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]

# A deployment is a page of text. Beyond these the file is a mistake or an attack on the parser.
MAX_BYTES = 1_000_000
MAX_NODES = 20_000
MAX_DEPTH = 50

_MERGE_TAG = "tag:yaml.org,2002:merge"
_SECOND_DOCUMENT = "but found another document"
_CORRECT_YAML = (
    "Correct it there: spaces for indentation, no tabs, and quotes around a text with `: ` or ` #`."
)

_Fact = TypeVar("_Fact")


@dataclass(frozen=True)
class Document:
    """A parsed YAML file. Readers share it, so nothing may change its content.

    Args:
        path: the file's name in messages.
        positions: position of each field: its key, or the item in a list.
        problems: problems with the text itself: duplicate keys, numbers with two readings.
        written: text of each unquoted value that is not read as that text, for messages.
    """

    path: str
    content: Mapping[str, Any]
    positions: Mapping[FieldPath, Location]
    problems: tuple[Problem, ...]
    written: Mapping[FieldPath, str]

    def locate(self, field: FieldPath) -> Location:
        """Returns the place of a field, or of its nearest parent in the file."""
        for length in range(len(field), 0, -1):
            if field[:length] in self.positions:
                return self.positions[field[:length]]
        return Location(self.path, 1, 1)

    def overlaid(self, field: FieldPath) -> "Document":
        """Returns the document with one of its mappings laid over its root.

        Mappings are merged, all other values are replaced. Each value keeps its place in the file.
        """
        return replace(self.section(field).over(self), problems=self.problems)

    def section(self, field: FieldPath) -> "Document":
        """Returns a mapping of the document as a document; an empty one where there is none."""
        content: Any = self.content
        for part in field:
            if isinstance(content, list) and isinstance(part, int):
                content = content[part]
            else:
                content = content.get(part) if isinstance(content, dict) else None
        if not isinstance(content, dict):
            return Document(self.path, {}, {}, (), {})
        positions, written = _below(self.positions, field), _below(self.written, field)
        return Document(self.path, content, positions, (), written)

    def nested(self, name: str, *keys: str) -> "Document":
        """Returns a document with some of this one's values, in a mapping of that name."""
        return Document(
            self.path,
            {name: {key: self.content[key] for key in keys if key in self.content}},
            {(name, *path): place for path, place in self.positions.items() if path[0] in keys},
            (),
            {(name, *path): text for path, text in self.written.items() if path[0] in keys},
        )

    def only(self, *keys: str) -> "Document":
        """Returns the document with no other values of its root than these."""
        others = {(key,) for key in self.content if key not in keys}
        return self.without(*others)

    def without(self, *fields: FieldPath) -> "Document":
        """Returns the document without some of its values, none of which is in a list."""
        content = self.content
        for field in fields:
            content = _dropped(content, field)
        removed = set(fields)
        positions, written = _kept(self.positions, removed), _kept(self.written, removed)
        return replace(self, content=content, positions=positions, written=written)

    def over(self, other: "Document") -> "Document":
        """Returns this document laid over another; each value keeps its own place."""
        replaced: set[FieldPath] = set()
        content = _merged(other.content, self.content, (), replaced)
        positions = {**_kept(other.positions, replaced), **self.positions}
        written = {**_kept(other.written, replaced), **self.written}
        return Document(self.path, content, positions, self.problems, written)


def _below(known: Mapping[FieldPath, _Fact], field: FieldPath) -> dict[FieldPath, _Fact]:
    """Returns facts about the fields below one, with their paths from there."""
    depth = len(field)
    return {p[depth:]: fact for p, fact in known.items() if p[:depth] == field and p != field}


def _kept(known: Mapping[FieldPath, _Fact], replaced: set[FieldPath]) -> dict[FieldPath, _Fact]:
    """Returns facts about the fields that are not replaced, nor below such a field."""
    return {
        path: fact
        for path, fact in known.items()
        if not any(path[:length] in replaced for length in range(1, len(path) + 1))
    }


def _dropped(content: Any, field: FieldPath) -> Any:
    key, *rest = field
    if not isinstance(content, Mapping) or key not in content:
        return content
    others = {name: value for name, value in content.items() if name != key}
    return {**others, key: _dropped(content[key], tuple(rest))} if rest else others


def _merged(
    base: Mapping[str, Any], overlay: Mapping[str, Any], path: FieldPath, replaced: set[FieldPath]
) -> dict[str, Any]:
    merged = dict(base)
    for key, value in overlay.items():
        below = merged.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            merged[key] = _merged(below, value, (*path, key), replaced)
        else:
            merged[key] = value
            replaced.add((*path, key))
    return merged


def read_document(path: Path, shown_as: str) -> Document:
    """Parses one YAML file; raises `UserError` if it cannot be read, or is no mapping of YAML."""
    place = Location(shown_as)
    try:
        size_bytes = path.stat().st_size
        raw = path.read_bytes() if size_bytes <= MAX_BYTES else b""
    except OSError as error:
        raise _unreadable(
            Code.FILE_UNREADABLE,
            place,
            f"cannot be read: {error.strerror}",
            "Make a readable file of it, or remove it.",
        ) from None
    if size_bytes > MAX_BYTES:
        raise _unreadable(
            Code.FILE_TOO_LARGE,
            place,
            f"has {size_bytes} bytes; the limit is {MAX_BYTES}",
            "Shorten it: weights and data are files of their own, which `artifacts` names.",
        )
    return _parse(raw, shown_as)


# One command reads a file several times: for each environment that a config has a section for, and
# environments.yaml for each of those. It is read anew every time, and parsed when it has changed.
@functools.lru_cache(maxsize=8)
def _parse(raw: bytes, shown_as: str) -> Document:
    place = Location(shown_as)
    try:
        root = yaml.compose(decode(raw, shown_as), Loader=_Loader)
    except _TooDeepError as error:
        mark = error.start_mark
        raise _too_deep(Location(shown_as, mark.line + 1, mark.column + 1)) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        if mark is not None:
            place = Location(shown_as, mark.line + 1, mark.column + 1)
        if error.problem == _SECOND_DOCUMENT:
            raise _unreadable(
                Code.SEVERAL_DOCUMENTS,
                place,
                "has a second YAML document, which begins here with `---`",
                "Remove this line, or move the lines below it into a file of their own.",
            ) from None
        raise _unreadable(
            Code.NOT_YAML, place, f"is not YAML: {error.problem or error.context}", _CORRECT_YAML
        ) from None
    except yaml.YAMLError as error:
        # Characters that YAML allows nowhere: the error has a byte's place and no mark.
        reason = getattr(error, "reason", type(error).__name__)
        raise _unreadable(Code.NOT_YAML, place, f"is not YAML: {reason}", _CORRECT_YAML) from None
    if not isinstance(root, yaml.MappingNode):
        is_list = isinstance(root, yaml.SequenceNode)
        found = "empty" if root is None else "a list" if is_list else "a single value"
        raise _unreadable(
            Code.NOT_A_MAPPING,
            Location(shown_as, 1, 1),
            f"is {found}; a mapping is needed",
            "Write `KEY: VALUE` lines; docs/reference.md lists the keys.",
        )
    return _Walk(shown_as).document(root)


class _TooDeepError(Exception):
    def __init__(self, start_mark: Any) -> None:
        self.start_mark = start_mark
        super().__init__()


class _Loader(_SafeLoader):
    """Composes nodes, and refuses deep nesting while it does: libyaml's recursion has no limit.

    The composer calls these two methods around every node; what they are for otherwise, resolving
    tags by path, is not used.
    """

    _depth = 0

    def descend_resolver(self, current_node: yaml.Node | None, _index: Any) -> None:
        """Comes before a node: `current_node` is the collection that it stands in."""
        self._depth += 1
        # A node of the collection that is one level too deep; an empty one is the walk's to find.
        if self._depth > MAX_DEPTH + 1 and current_node is not None:
            raise _TooDeepError(current_node.start_mark)

    def ascend_resolver(self) -> None:
        self._depth -= 1


resolve_exponents(_Loader)


def _too_deep(place: Location) -> UserError:
    return _unreadable(
        Code.FILE_TOO_LARGE,
        place,
        f"is nested more than {MAX_DEPTH} levels deep",
        "Write it flatter; docs/reference.md shows how deep the sections go.",
    )


def _unreadable(code: Code, place: Location, message: str, remedy: str) -> UserError:
    return UserError([Problem(code, Kind.SHAPE, f"the file {message}", remedy, location=place)])


class _Walk:
    def __init__(self, path: str) -> None:
        self._path = path
        self._scalars = Scalars()
        self._positions: dict[FieldPath, Location] = {}
        self._written: dict[FieldPath, str] = {}
        self._problems: list[Problem] = []
        self._nodes = 0
        self._depth = 1

    def document(self, root: yaml.MappingNode) -> Document:
        content = self._mapping(root, ())
        return Document(self._path, content, self._positions, tuple(self._problems), self._written)

    def _value(self, node: yaml.Node, field: FieldPath) -> Any:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            # Nodes are counted after expansion, which is what a bomb of aliases is made of.
            raise _unreadable(
                Code.FILE_TOO_LARGE,
                self._place(node),
                f"has more than {MAX_NODES} values once its aliases are expanded",
                "Write out what is needed: an alias of aliases grows with every level.",
            )
        if isinstance(node, yaml.CollectionNode):
            self._depth += 1
            if self._depth > MAX_DEPTH:
                # An alias to what it stands in has no end.
                raise _too_deep(self._place(node))
            content = self._collection(node, field)
            self._depth -= 1
            return content
        scalar = cast(yaml.ScalarNode, node)
        try:
            value = self._scalars.read(scalar)
        except (yaml.YAMLError, ValueError, KeyError, AttributeError):
            # PyYAML lets its own lookups fail on a value that its tag does not fit.
            raise _unreadable(
                Code.NOT_YAML,
                self._place(node),
                f"has a value that YAML cannot read: {node.value[:80]!r}",
                "Put it in quotes if it is a text, and remove a tag (`!...`) before it.",
            ) from None
        if not isinstance(value, str):
            self._written[field] = scalar.value
            self._check_readings(scalar, field)
        return value

    def _check_readings(self, node: yaml.ScalarNode, field: FieldPath) -> None:
        both = readings(node)
        if both is None:
            return
        self._problems.append(
            Problem(
                Code.TWO_READINGS,
                Kind.VALUE,
                f"{node.value} has two readings: {both.octal} in YAML 1.1, whose leading zero "
                f"means octal, and {both.decimal} in YAML 1.2",
                f'Write {both.octal} or {both.decimal}; put a text in quotes: `"{node.value}"`.',
                field,
                self._place(node),
            )
        )

    def _collection(self, node: yaml.CollectionNode, field: FieldPath) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, field)
        items = []
        for index, item in enumerate(node.value):
            self._positions[(*field, index)] = self._place(item)
            items.append(self._value(item, (*field, index)))
        return items

    def _mapping(self, node: yaml.MappingNode, field: FieldPath) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE_TAG:
                sources = (
                    value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
                )
                for source in reversed(sources):
                    if not isinstance(source, yaml.MappingNode):
                        raise _unreadable(
                            Code.NOT_YAML,
                            self._place(source),
                            "merges (`<<`) something that is not a mapping",
                            "Merge a mapping that has an anchor: `<<: *NAME`.",
                        )
                    merged.update(self._value(source, field))
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                raise _unreadable(
                    Code.NOT_YAML,
                    self._place(key_node),
                    "has a key that is not a text",
                    "Write the key as a plain word.",
                )
            key = str(key_node.value)
            place = self._place(key_node)
            if key in own:
                first = self._positions[(*field, key)]
                self._problems.append(
                    Problem(
                        Code.DUPLICATE_KEY,
                        Kind.SHAPE,
                        f"the key is given twice; the first is on line {first.line}",
                        "Keep one of the two.",
                        (*field, key),
                        place,
                    )
                )
                continue
            self._positions[(*field, key)] = place
            own[key] = self._value(value_node, (*field, key))
        return {**merged, **own}

    def _place(self, node: yaml.Node) -> Location:
        mark = node.start_mark
        return Location(self._path, mark.line + 1, mark.column + 1)
