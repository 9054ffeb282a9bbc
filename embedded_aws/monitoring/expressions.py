"""The grammar of metric math: from a formula's text to a tree.

Nothing is evaluated here, and Python's own evaluation is not used. Precedence from low to high: OR,
AND, comparison, + and -, * and /, unary -, ^. Syntax:
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

FUNCTIONS = (
    "ABS",
    "AVG",
    "CEIL",
    "FILL",
    "FLOOR",
    "IF",
    "MAX",
    "METRICS",
    "MIN",
    "PERIOD",
    "SUM",
)
# Words that FILL takes in place of a value.
FILL_WORDS = ("REPEAT", "LINEAR")
# Deeper than any useful formula, and far below Python's recursion limit.
_MAX_DEPTH = 40
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<word>[A-Za-z][A-Za-z0-9_]*)
    | (?P<text>"[^"]*"|'[^']*')
    | (?P<sign>==|!=|<=|>=|&&|\|\||[-+*/^()<>,\[\]])
    )""",
    re.VERBOSE,
)
_LOGICAL = {"&&": "AND", "||": "OR"}
# The binary operators by precedence, from low to high.
_LEVELS = (
    ("OR", "||"),
    ("AND", "&&"),
    ("==", "!=", "<=", ">=", "<", ">"),
    ("+", "-"),
    ("*", "/"),
)


class ExpressionError(Exception):
    """A formula is wrong, or uses something that is not evaluated here.

    The message is a sentence without the formula itself.
    """


@dataclass(frozen=True)
class Number:
    """A literal."""

    value: float


@dataclass(frozen=True)
class Name:
    """The result of another query."""

    identifier: str


@dataclass(frozen=True)
class Word:
    """REPEAT or LINEAR, or the text in METRICS("text")."""

    text: str


@dataclass(frozen=True)
class Negation:
    """Unary minus."""

    operand: "Node"


@dataclass(frozen=True)
class Chain:
    """Operands joined from left to right by operators of one precedence."""

    first: "Node"
    rest: "tuple[tuple[str, Node], ...]"


@dataclass(frozen=True)
class Array:
    """`[a, b]`."""

    items: "tuple[Node, ...]"


@dataclass(frozen=True)
class Call:
    """A function of `FUNCTIONS`."""

    function: str
    arguments: "tuple[Node, ...]"


Node = Number | Name | Word | Negation | Chain | Array | Call


def parse(text: str) -> Node:
    """Parses a formula.

    Raises:
        ExpressionError: the text is no formula, or uses a function that is not evaluated here.
    """
    parser = _Parser(text)
    node = parser.chain()
    parser.expect_end()
    return node


def names_in(node: Node) -> Iterator[str]:
    """Yields the identifiers that a formula refers to."""
    match node:
        case Name(identifier):
            yield identifier
        case Negation(operand):
            yield from names_in(operand)
        case Chain(first, rest):
            yield from names_in(first)
            for _, operand in rest:
                yield from names_in(operand)
        case Array(children) | Call(_, children):
            for child in children:
                yield from names_in(child)


class _Parser:
    """A recursive-descent parser."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._depth = 0
        # Kind and text of the next token; both are empty at the end.
        self._kind = self._ahead = ""
        self._advance()

    def expect_end(self) -> None:
        """Refuses text after the formula."""
        if self._kind:
            raise ExpressionError(f"`{self._ahead}` is not expected there")

    def chain(self, level: int = 0) -> Node:
        """Parses operands joined by the operators of a level or of higher levels."""
        if level == len(_LEVELS):
            return self._signed()
        first = self.chain(level + 1)
        rest = []
        while self._ahead in _LEVELS[level]:
            sign = self._advance()
            rest.append((_LOGICAL.get(sign, sign), self.chain(level + 1)))
        return Chain(first, tuple(rest)) if rest else first

    def _signed(self) -> Node:
        """Parses an operand with its sign; counts the depth, as everything nested passes here."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ExpressionError(f"it is nested more than {_MAX_DEPTH} deep")
        try:
            if self._ahead == "-":
                self._advance()
                return Negation(self._signed())
            base = self._operand()
            if self._ahead == "^":
                # From the right, and with a sign: 2^-1.
                self._advance()
                return Chain(base, (("^", self._signed()),))
            return base
        finally:
            self._depth -= 1

    def _operand(self) -> Node:
        if self._kind == "number":
            return Number(float(self._advance()))
        if self._kind == "text":
            return Word(self._advance()[1:-1])
        if self._kind == "word":
            return self._word()
        if self._ahead == "(":
            self._advance()
            inner = self.chain()
            self._expect(")")
            return inner
        if self._ahead == "[":
            self._advance()
            return Array(self._list("]"))
        if not self._kind:
            raise ExpressionError("it ends too early")
        raise ExpressionError(f"`{self._ahead}` is not expected there")

    def _word(self) -> Node:
        word = self._ahead
        # Checked before the next token is read, because the argument of SEARCH is another language.
        if self._text[self._position :].lstrip().startswith("("):
            if word not in FUNCTIONS:
                raise ExpressionError(
                    f"the function {word} is not evaluated; these are: {', '.join(FUNCTIONS)}"
                )
            self._advance()
            self._advance()
            return Call(word, self._list(")"))
        if word == "SELECT":
            raise ExpressionError("Metrics Insights queries are not evaluated")
        self._advance()
        return Word(word) if word in FILL_WORDS else Name(word)

    def _list(self, closing: str) -> tuple[Node, ...]:
        items = []
        if self._ahead != closing:
            items.append(self.chain())
            while self._ahead == ",":
                self._advance()
                items.append(self.chain())
        self._expect(closing)
        return tuple(items)

    def _expect(self, sign: str) -> None:
        if self._ahead != sign:
            found = f"not `{self._ahead}`" if self._kind else "but it ends"
            raise ExpressionError(f"`{sign}` is expected, {found}")
        self._advance()

    def _advance(self) -> str:
        """Reads the next token; returns the one before it."""
        previous = self._ahead
        match = _TOKEN.match(self._text, self._position)
        if match is not None:
            self._kind = match.lastgroup or ""
            self._ahead = match[self._kind]
            self._position = match.end()
        elif self._text[self._position :].strip():
            character = self._text[self._position :].lstrip()[0]
            raise ExpressionError(f"`{character}` is not expected there")
        else:
            self._kind = self._ahead = ""
        return previous
