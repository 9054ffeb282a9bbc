"""Finds the places where a fault can be planted, and chooses among them by a seed."""

import ast
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.planted_faults import PACKAGES, PlantedFaultsError
from tools.planted_faults.places import Place, is_valid, places


@dataclass(frozen=True)
class Fault:
    """A change of a few characters in one file.

    Attributes:
        file: relative to the project, with slashes.
        line: line of the first changed character.
        place: the text to change, and its replacement.
    """

    file: str
    line: int
    place: Place

    @property
    def change(self) -> str:
        """Returns a description of the change in one line."""
        return self.place.change

    @property
    def key(self) -> tuple[str, int, int, str]:
        """Returns a key that differs from every other fault's in the same sources."""
        return (self.file, self.line, self.place.start, self.change)


def choose(root: Path, seed: int, count: int, within: Sequence[str] = ()) -> list[Fault]:
    """Returns faults in the order of their files and lines.

    The executable lines are cut into as many parts as there are faults, and each part has one
    fault. Every package therefore has its share by the number of its lines.

    Args:
        root: the project.
        seed: chooses within each part.
        count: number of faults.
        within: limits the faults to these files and folders, relative to the project; by default
            PACKAGES.

    Raises:
        PlantedFaultsError: there is no such file, or there are fewer places than faults.
    """
    lines: list[tuple[str, int]] = []
    found: dict[tuple[str, int], list[Place]] = defaultdict(list)
    for file in source_files(root, within or PACKAGES):
        source = (root / file).read_bytes()
        executable = executable_lines(ast.parse(source))
        lines += [(file, line) for line in sorted(executable)]
        for place in places(source):
            found[file, place.statement_line].append(place)
    if len(found) < count:
        raise PlantedFaultsError(f"there are {len(found)} lines for {count} faults: ask for fewer")
    chance = random.Random(seed)  # noqa: S311  # the same choice every time is the purpose
    chosen = []
    for part in range(count):
        own = lines[len(lines) * part // count : len(lines) * (part + 1) // count]
        chance.shuffle(own)
        for key in own:
            fit = _choose_place((root / key[0]).read_bytes(), found.get(key, []), chance)
            if fit is not None:
                chosen.append(Fault(key[0], fit.line, fit))
                break
    return chosen


def _choose_place(source: bytes, offered: list[Place], chance: random.Random) -> Place | None:
    chance.shuffle(offered)
    # Each kind has the same chance, whatever the number of its places.
    kinds = sorted({place.kind for place in offered})
    chance.shuffle(kinds)
    offered.sort(key=lambda place: kinds.index(place.kind))
    return next((place for place in offered if is_valid(source, place)), None)


def source_files(root: Path, within: Sequence[str]) -> list[str]:
    """Returns the Python files of folders, sorted, relative to the project."""
    found = set()
    for name in within:
        path = root / name
        if path.is_file():
            found.add(path)
        elif path.is_dir():
            found.update(path.rglob("*.py"))
        elif name not in PACKAGES:
            raise PlantedFaultsError(f"{name} is neither a file nor a folder of the project")
    return sorted(path.relative_to(root).as_posix() for path in found)


def executable_lines(tree: ast.Module) -> set[int]:
    """Returns the first lines of the statements with an effect."""
    return {
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    }


def mentions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yields each identifier that a module uses with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name, node.lineno
            case ast.keyword(arg=str(name)):
                yield name, node.lineno
            case _:
                continue


def defined_by(statement: ast.stmt) -> list[str]:
    """Returns the names that a statement assigns."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case _:
            return []


def lines_of_functions(tree: ast.Module) -> set[int]:
    """Returns the lines that run in a call, not when the module is imported."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.update(range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.Lambda):
            found.update(range(node.body.lineno, (node.body.end_lineno or 0) + 1))
    return found
