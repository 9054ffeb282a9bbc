"""Finds docstrings and comments that are hard to read or say too little: `make lint`.

Ruff's pydocstyle rules (`D`) check that docstrings exist and how they are laid out. This tool
checks the rest: the first word, the parameters of public functions, and the prose, by the rules of
tools.prose.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tools.prose import LONGEST_WORDS, TURNS, Finding

# A public function with this many parameters describes each of them.
PARAMETERS_TO_DESCRIBE = 3
# After one of these first words, a reader does not know yet what a function returns or does.
_VAGUE = re.compile(
    "As|By|For|How|In|It|Its|None|Not|Nothing|Of|On|One|Over|See|Some|Such|That|These|They|This"
    "|Those|What|When|Where|Who|Whoever|Why|With|Without"
)
# A docstring states what a function does, in the third person: "Returns", not "Return".
_IMPERATIVE = re.compile(
    "Add|Build|Check|Compute|Copy|Create|Delete|Do|Find|Get|Give|List|Load|Make|Parse|Print|Put"
    "|Read|Remove|Return|Run|Say|Send|Set|Show|Start|Stop|Take|Tell|Wait|Write|Yield"
)
_SECTION = re.compile(r"(Args|Attributes|Example|Examples|Note|Raises|Returns|Yields):")
_ARGUMENT = re.compile(r" {4}(\*{0,2}\w+)(?: \([^)]*\))?:\s*(.*)")
_ITEM = re.compile(r"\s*(?:[-*]|\d+\.)\s|\S*:$")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_DIAGRAM = re.compile(r" (=|->) ")
_CODE = re.compile(r"``[^`]*``|`[^`]*`")
_END = re.compile(r"(?<=[.!?])\s+|(?<=[:;])\s+(?=[A-Z`(\[*\d])")
_TURNS = {re.compile(rf"\b(?:{turn})\b", re.IGNORECASE): better for turn, better in TURNS.items()}
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Documented = ast.Module | ast.ClassDef | _Function


# Class name -> methods whose parameters the class or a base class describes.
Described = Mapping[str, frozenset[str]]


def described_methods(texts: Iterable[str]) -> Described:
    """Returns the methods of all classes whose parameters are described, inherited ones included.

    Base classes are found by their names, in all of the modules.

    Args:
        texts: the source code of modules.
    """
    own, bases = dict[str, set[str]](), dict[str, set[str]]()
    for text in texts:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                methods = [each for each in node.body if isinstance(each, _Function)]
                own.setdefault(node.name, set()).update(
                    each.name for each in methods if _arguments(ast.get_docstring(each) or "")
                )
                bases.setdefault(node.name, set()).update(map(_base_name, node.bases))

    def inherited(name: str, seen: frozenset[str]) -> frozenset[str]:
        further = bases.get(name, set()) - seen
        return frozenset(own.get(name, ())).union(
            *(inherited(each, seen | {each}) for each in further)
        )

    return {name: inherited(name, frozenset({name})) for name in own}


def _base_name(base: ast.expr) -> str:
    """Returns the last part of a base class's name, without its type arguments."""
    return ast.unparse(base).partition("[")[0].rpartition(".")[2]


def findings(path: str, text: str, described: Described | None = None) -> Iterator[Finding]:
    """Yields the docstrings and comments of a module that break a rule.

    Args:
        path: shown in each finding; the file is not read.
        text: the module's source code.
        described: result of `described_methods`: a method that overrides one of these need not
            describe its parameters again.

    Raises:
        SyntaxError: the text is not Python.
    """
    module = ast.parse(text)
    _mark_commands(module)
    yield from _of_docstrings(path, module, described or {}, is_public=True)
    for line, comment in _comments(text):
        yield from _of_prose(path, line, comment)


def _of_docstrings(
    path: str, node: _Documented, described: Described, *, is_public: bool
) -> Iterator[Finding]:
    docstring = ast.get_docstring(node)
    if docstring is not None:
        line = node.body[0].lineno
        for unit in _units(docstring):
            yield from _of_prose(path, line, unit)
        if isinstance(node, _Function):
            yield from _of_first_word(path, line, node, docstring)
            yield from _of_arguments(path, line, node, docstring, is_public=is_public)
    inherited = frozenset[str]()
    if isinstance(node, ast.ClassDef):
        bases = map(_base_name, node.bases)
        inherited = inherited.union(*(described.get(base, frozenset()) for base in bases))
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | _Function):
            is_reached = is_public and not isinstance(node, _Function)
            is_hidden = child.name.startswith("_") or child.name in inherited
            yield from _of_docstrings(
                path, child, described, is_public=is_reached and not is_hidden
            )


def _of_first_word(path: str, line: int, node: _Function, docstring: str) -> Iterator[Finding]:
    word = docstring.split()[0].rstrip(",:;.")
    if _VAGUE.fullmatch(word):
        yield Finding(
            path, line, f'{node.name} begins with "{word}": say first what it returns or does'
        )
    # The docstring of a command is its help text, which tells a user what to do.
    elif _IMPERATIVE.fullmatch(word) and not _is_command(node):
        yield Finding(
            path, line, f'{node.name} begins with "{word}": state what it does, as in "Returns"'
        )


def _mark_commands(module: ast.Module) -> None:
    """Adds a decorator to functions that are registered as in `app.command()(function)`."""
    functions = {node.name: node for node in module.body if isinstance(node, _Function)}
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and _makes_command(node.func):
            for argument in node.args:
                if isinstance(argument, ast.Name) and argument.id in functions:
                    functions[argument.id].decorator_list.append(node.func)


def _makes_command(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("command", "callback")
    )


def _is_command(node: _Function) -> bool:
    return any(map(_makes_command, node.decorator_list))


def _of_arguments(
    path: str, line: int, node: _Function, docstring: str, *, is_public: bool
) -> Iterator[Finding]:
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    names = [argument.arg for argument in every if argument.arg not in ("self", "cls")]
    described = _arguments(docstring)
    is_long = is_public and len(names) >= PARAMETERS_TO_DESCRIBE and not _is_command(node)
    if described is None:
        if is_long:
            yield Finding(
                path, line, f"{node.name} has {len(names)} parameters and no Args section"
            )
        return
    stars = [argument.arg for argument in (node.args.vararg, node.args.kwarg) if argument]
    for name, text in described.items():
        if name not in (*names, *stars):
            yield Finding(path, line, f"{node.name} has no parameter {name}")
        words = set(re.findall(r"[a-z]+", text.lower())) - {"a", "an", "the"}
        if words <= set(name.lower().split("_")):
            yield Finding(path, line, f"{node.name}: the description of {name} repeats its name")


def _arguments(docstring: str) -> dict[str, str] | None:
    """Returns the texts of the Args section by parameter, or None without that section."""
    _, found, section = f"\n{docstring}".partition("\nArgs:\n")
    if not found:
        return None
    texts, name = dict[str, str](), ""
    for text in section.splitlines():
        if text and not text.startswith(" "):
            break
        if argument := _ARGUMENT.match(text):
            name = argument[1].lstrip("*")
            texts[name] = argument[2]
        elif name:
            texts[name] += f" {text.strip()}"
    return texts


def _units(docstring: str) -> Iterator[str]:
    """Yields the paragraphs, list items and described parameters of a docstring, in one line each.

    Fenced code, tables, formulas and diagrams (lines with a bar, an equals sign or an arrow) are
    left out.
    """
    lines = list[str]()
    for text in [*_FENCED.sub("", docstring).splitlines(), ""]:
        is_prose = (
            bool(text.strip()) and not text.lstrip().startswith("|") and not _DIAGRAM.search(text)
        )
        begins = not is_prose or _ITEM.match(text) or _ARGUMENT.match(text)
        if begins or _SECTION.fullmatch(text):
            if lines:
                yield " ".join(lines)
            lines = []
        if is_prose:
            lines.append(text.strip())


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Yields the text of comments with their first line; adjacent comment lines form one text."""
    begin, end, joined = 0, 0, ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        words = token.string.lstrip("#! ")
        is_alone = token.line.lstrip().startswith("#")
        if is_alone and joined and token.start[0] == end + 1:
            joined += f" {words}"
        else:
            if joined:
                yield begin, joined
            begin, joined = token.start[0], words
        end = token.start[0] if is_alone else 0
    if joined:
        yield begin, joined


def _of_prose(path: str, line: int, unit: str) -> Iterator[Finding]:
    for sentence in _END.split(_CODE.sub("Code", unit)):
        words = sentence.split()
        shown = " ".join(words[:6])
        if len(words) > LONGEST_WORDS:
            yield Finding(path, line, f"{len(words)} words, at most {LONGEST_WORDS}: {shown} ...")
        for turn, better in _TURNS.items():
            if match := turn.search(sentence):
                yield Finding(path, line, f'"{match[0]}": write {better}: {shown} ...')


def main(arguments: Sequence[str]) -> int:
    """Prints the findings of the modules, and returns 1 if there are any.

    Args:
        arguments: Python files, and folders that are searched for Python files.
    """
    paths = [Path(argument) for argument in arguments]
    modules = [file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])]
    texts = {str(module): module.read_text("utf-8") for module in modules}
    described = described_methods(texts.values())
    found = sorted(
        finding for path, text in texts.items() for finding in findings(path, text, described)
    )
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
