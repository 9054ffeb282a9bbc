"""What Triton's Python loads keeps to Python 3.10, which the oldest images have."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FIRST = (
    "containers.triton.__main__",
    "containers.triton.model",
    "containers.triton.start",
)
# In the standard library since 3.11.
TOO_NEW = {"Self", "assert_never", "UTC", "StrEnum", "tomllib", "TaskGroup", "file_digest"}


def _imports(tree: ast.AST) -> set[str]:
    """Returns the modules that are imported when a module is, and the names taken from them."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
            found.add(str(node.module))
    return found


def _without_annotations_only(tree: ast.Module) -> ast.Module:
    """Leaves out what only type checkers import, and what `compile` alone imports."""
    kept = [
        node
        for node in tree.body
        if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
    ]
    return ast.Module(kept, [])


def _closure() -> list[Path]:
    waiting, seen = list(FIRST), dict[str, Path]()
    while waiting:
        name = waiting.pop()
        path = ROOT.joinpath(*name.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if name in seen or not path.is_file() or name.startswith("containers.triton.compile"):
            continue
        seen[name] = path
        tree = _without_annotations_only(ast.parse(path.read_text("utf-8")))
        waiting += [each for each in _imports(tree) if each.startswith("containers.")]
    return sorted(seen.values())


@pytest.mark.parametrize("path", _closure(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_parses_and_imports_nothing_newer(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"), feature_version=(3, 10))
    names = {name.rpartition(".")[2] for name in _imports(_without_annotations_only(tree))}
    assert not names & TOO_NEW
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not attributes & TOO_NEW


def test_the_modules_are_found() -> None:
    found = {str(path.relative_to(ROOT / "containers")) for path in _closure()}
    assert {"triton/decoding.py", "serving/settings.py", "serving/json_files.py"} <= found
    assert sys.version_info >= (3, 11)
