"""Finds the places in a module where a fault can be planted, with the syntax tree."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

_TURNED: Final = {
    ast.Lt: (r"<", "<="),
    ast.LtE: (r"<=", "<"),
    ast.Gt: (r">", ">="),
    ast.GtE: (r">=", ">"),
    ast.Eq: (r"==", "!="),
    ast.NotEq: (r"!=", "=="),
    ast.In: (r"\bin\b", "not in"),
    ast.NotIn: (r"\bnot\s+in\b", "in"),
    ast.Is: (r"\bis\b", "is not"),
    ast.IsNot: (r"\bis\s+not\b", "is"),
}
# Calls whose arguments are texts for people, or that only make the tests slower.
_NO_PLACES_IN: Final = re.compile(
    r"(^|\.)_?(log|logger|logging|warnings)\.|(^|\.)(log_event|warn|sleep|Histogram|Counter|Gauge)$"
)
_LONGEST_SHOWN: Final = 50


@dataclass(frozen=True)
class Place:
    """A piece of a module's text and its replacement.

    Attributes:
        kind: one of comparison, constant, call, condition.
        start: its first byte.
        end: the byte after its last.
        new: the replacement, with as many line ends as the original.
        change: describes the change in one line.
        line: line of its first byte.
        statement_line: first line of the statement that it is in.
        lines: all lines of that statement, without the statements inside it.
        names: names that the statement defines, if it runs at import, and the names around it,
            outwards.
        at_import: whether it runs when the module is imported, and not in a function.
    """

    kind: str
    start: int
    end: int
    new: bytes
    change: str
    line: int
    statement_line: int
    lines: range
    names: tuple[str, ...]
    at_import: bool

    @property
    def last_line(self) -> int:
        """Returns the line of its last byte."""
        return self.line + self.new.count(b"\n")


@dataclass(frozen=True)
class _Scope:
    names: tuple[str, ...] = ()
    at_import: bool = True
    lines: range = range(0)


def places(source: bytes) -> list[Place]:
    """Returns every place in a module, in the order of the text."""
    found = _Finder(source).block(ast.parse(source).body, _Scope())
    return sorted(found, key=lambda place: (place.start, place.end, place.kind))


def plant(source: bytes, place: Place) -> bytes:
    """Returns the module's text with the fault."""
    return source[: place.start] + place.new + source[place.end :]


def is_valid(source: bytes, place: Place) -> bool:
    """Returns whether the module with the fault compiles, with its lines unchanged."""
    planted = plant(source, place)
    if planted.count(b"\n") != source.count(b"\n"):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(planted, "planted", "exec", dont_inherit=True)
        except SyntaxError:
            return False
    return True


class _Finder:
    """Walks through a module; a scope describes the surroundings of the current node."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def block(self, body: Sequence[ast.stmt], scope: _Scope) -> Iterator[Place]:
        for statement in body:
            yield from self._statement(statement, scope)

    def _statement(self, node: ast.stmt, scope: _Scope) -> Iterator[Place]:
        scope = replace(scope, lines=_own_lines(node))
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                named = replace(scope, names=(node.name, *scope.names))
                yield from self._expressions(node.decorator_list, named)
                defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
                for default in defaults:
                    yield from self._default(default, named)
                yield from self.block(node.body, replace(named, at_import=False))
            case ast.ClassDef():
                named = replace(scope, names=(node.name, *scope.names))
                yield from self._expressions([*node.decorator_list, *node.bases], named)
                yield from self._expressions(node.keywords, named)
                yield from self.block(node.body, named)
            case ast.If(test=test) if _is_never_tested(test):
                yield from self.block(node.orelse, scope)
            case ast.If():
                yield from self._negated(node.test, scope)
                yield from self._expression(node.test, scope)
                yield from self.block([*node.body, *node.orelse], scope)
            case ast.Assign():
                names = tuple(map(_name, node.targets))
                if "__all__" not in names:
                    yield from self._default(node.value, _defining(scope, names))
            case ast.AnnAssign():
                if node.value is not None:
                    yield from self._default(node.value, _defining(scope, (_name(node.target),)))
            case ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom():
                return
            case ast.Expr():
                yield from self._left_out(node, scope)
                yield from self._expression(node.value, scope)
            case _:
                for child in ast.iter_child_nodes(node):
                    yield from self._child(child, scope)

    def _child(self, node: ast.AST, scope: _Scope) -> Iterator[Place]:
        if isinstance(node, ast.stmt):
            yield from self._statement(node, scope)
        elif isinstance(node, ast.expr | ast.keyword | ast.comprehension):
            yield from self._expression(node, scope)
        elif isinstance(node, ast.ExceptHandler | ast.match_case | ast.withitem):
            for child in ast.iter_child_nodes(node):
                yield from self._child(child, scope)

    def _expressions(self, nodes: Sequence[ast.AST], scope: _Scope) -> Iterator[Place]:
        for node in nodes:
            yield from self._expression(node, scope)

    def _expression(self, node: ast.AST, scope: _Scope) -> Iterator[Place]:
        match node:
            case ast.JoinedStr():
                return  # Python 3.11 does not know where in the text its parts are
            case ast.Subscript(value=ast.Name(id="Literal")):
                return
            case ast.Constant():
                yield from self._moved(node, scope)
                return
            case ast.Call():
                if _NO_PLACES_IN.search(ast.unparse(node.func)):
                    return
                yield from self._defaults_of_call(node, scope)
            case ast.Compare():
                yield from self._turned(node, scope)
            case ast.IfExp():
                yield from self._negated(node.test, scope)
            case ast.comprehension():
                for test in node.ifs:
                    yield from self._negated(test, scope)
            case ast.Lambda():
                scope = replace(scope, at_import=False)
            case _:
                pass
        for child in ast.iter_child_nodes(node):
            yield from self._child(child, scope)

    def _default(self, node: ast.expr, scope: _Scope) -> Iterator[Place]:
        """Yields places of a default value, in which strings change as well."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from self._changed_string(node, scope)
        else:
            yield from self._expression(node, scope)

    def _defaults_of_call(self, node: ast.Call, scope: _Scope) -> Iterator[Place]:
        offered = [each.value for each in node.keywords if each.arg == "default"]
        if isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            offered += node.args[1:2]
        for each in offered:
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                yield from self._changed_string(each, scope)

    def _changed_string(self, node: ast.Constant, scope: _Scope) -> Iterator[Place]:
        start, end = self._span(node)
        text = self._source[start:end]
        if re.fullmatch(rb"""(["'])[^"'\\\n]*\1""", text):
            yield self._place("constant", start, end, text[:-1] + b"_" + text[-1:], scope)

    def _moved(self, node: ast.Constant, scope: _Scope) -> Iterator[Place]:
        if isinstance(node.value, bool):
            new = repr(not node.value)
        elif isinstance(node.value, int | float):
            new = repr(node.value + 1)
        else:
            return
        yield self._place("constant", *self._span(node), new.encode(), scope)

    def _turned(self, node: ast.Compare, scope: _Scope) -> Iterator[Place]:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            start, end = self._span(left)[1], self._span(right)[0]
            between = self._source[start:end].decode()
            pattern, new = _TURNED[type(operator)]
            match = re.search(pattern, between)
            if match and "#" not in between:
                first = start + len(between[: match.start()].encode())
                yield self._place("comparison", first, first + len(match[0]), new.encode(), scope)
            left = right

    def _negated(self, node: ast.expr, scope: _Scope) -> Iterator[Place]:
        if isinstance(node, ast.Constant):
            return
        start, end = self._span(node)
        text = self._source[start:end]
        new = b"not (" + text + b")"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            new = self._source[slice(*self._span(node.operand))]
        yield self._place("condition", start, end, new, scope)

    def _left_out(self, node: ast.Expr, scope: _Scope) -> Iterator[Place]:
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(call, ast.Call) and not _NO_PLACES_IN.search(ast.unparse(call.func)):
            start, end = self._span(node)
            new = b"pass" + b"\n" * self._source[start:end].count(b"\n")
            yield self._place("call", start, end, new, scope)

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        last = node.end_lineno or node.lineno
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[last - 1] + (node.end_col_offset or 0),
        )

    def _place(self, kind: str, start: int, end: int, new: bytes, scope: _Scope) -> Place:
        line = self._source.count(b"\n", 0, start) + 1
        old = _shown(self._source[start:end])
        change = {
            "call": f"{old} left out",
            "condition": f"{old} negated",
        }.get(kind, f"{old} becomes {_shown(new)}")
        return Place(
            kind, start, end, new, change, line, scope.lines.start, scope.lines, scope.names,
            scope.at_import,
        )  # fmt: skip


def _own_lines(node: ast.stmt) -> range:
    """Returns the lines of a statement up to the first statement inside it."""
    first = node.lineno
    inner = getattr(node, "body", None) or getattr(node, "cases", None)
    if not inner:
        return range(first, (node.end_lineno or first) + 1)
    head = inner[0].pattern if isinstance(inner[0], ast.match_case) else inner[0]
    decorators = getattr(head, "decorator_list", None)
    return range(first, max(first + 1, decorators[0].lineno if decorators else head.lineno))


def _defining(scope: _Scope, names: tuple[str, ...]) -> _Scope:
    return replace(scope, names=(*names, *scope.names)) if scope.at_import else scope


def _name(target: ast.expr) -> str:
    return target.attr if isinstance(target, ast.Attribute) else ast.unparse(target)


def _is_never_tested(test: ast.expr) -> bool:
    """Returns whether a condition guards a block for type checkers, or a program's entry."""
    text = ast.unparse(test)
    return text in ("TYPE_CHECKING", "typing.TYPE_CHECKING") or text.startswith("__name__ ==")


def _shown(text: bytes) -> str:
    line = " ".join(text.decode().split())
    return line if len(line) <= _LONGEST_SHOWN else f"{line[: _LONGEST_SHOWN - 3]}..."
