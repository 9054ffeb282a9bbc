"""The modules that serve: the base's Python runs them, with the packages of the image."""

import ast
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from slipway.image_sources import image_files
from tests.support.locks import lines, locked

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "containers" / "triton"
# What is imported -> the package that has it, where the name is another.
PACKAGES = {"cuda": "cuda-bindings"}
# NumPy is the base's, and Triton gives the other to the process of a Python model.
OF_THE_BASE = {"numpy", "triton_python_backend_utils"}
# The standard library's newer names, which the oldest base's Python 3.10 lacks.
NEWER = {
    "asyncio": {"Runner", "TaskGroup", "timeout", "timeout_at"},
    "contextlib": {"chdir"},
    "datetime": {"UTC"},
    "enum": {"EnumCheck", "ReprEnum", "StrEnum", "member", "nonmember", "verify"},
    "hashlib": {"file_digest"},
    "itertools": {"batched"},
    "tomllib": {"load", "loads"},
    "typing": {
        "LiteralString", "Never", "NotRequired", "Required", "Self", "TypeVarTuple", "Unpack",
        "assert_never", "assert_type", "dataclass_transform", "override", "reveal_type",
    },
}  # fmt: skip
NEWER_BUILTINS = {"BaseExceptionGroup", "ExceptionGroup"}


def imports(path):
    """Yields each import as the module and the imported name, except those for types alone."""
    pending = [ast.parse(path.read_text("utf-8"))]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            pending.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)
        pending.extend(ast.iter_child_nodes(node))


def served():
    """Yields every module that serving may import: what the family has, and what that imports."""
    pending = sorted(FOLDER.glob("*.py"))
    found = set()
    while pending:
        path = pending.pop()
        if path in found or not path.is_file():
            continue
        found.add(path)
        yield path
        for module, name in imports(path):
            if module.split(".")[0] != "containers" or module.startswith(
                "containers.triton.compile"
            ):
                continue
            place = ROOT.joinpath(*module.split("."))
            pending += [place.with_suffix(".py"), place / "__init__.py", place / f"{name}.py"]


def test_serving_imports_what_its_image_has():
    imported = {module.partition(".")[0] for path in served() for module, _ in imports(path)} - {
        "containers",
        *sys.stdlib_module_names,
    }
    names = {PACKAGES.get(name, name) for name in imported} - OF_THE_BASE
    for python in FOLDER.glob("requirements-python*.txt"):
        for bindings in FOLDER.glob("requirements-*-py3.txt"):
            # The Dockerfile gives TensorRT's bindings that name.
            assert names <= {*locked(python), *locked(bindings), "tensorrt"}
    # No package is installed for nothing.
    asked = {Requirement(line).name for line in lines(FOLDER / "requirements.in")}
    assert asked - {"dumb-init"} <= {*names, "numpy"}


def too_new(source):
    """What a module uses that the oldest base's Python does not know."""
    found = []
    for node in ast.walk(ast.parse(source, feature_version=(3, 10))):
        if isinstance(node, ast.Name) and node.id in NEWER_BUILTINS:
            found.append(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found += {node.attr} & NEWER.get(node.value.id, set())
    return found


@pytest.mark.parametrize("path", list(served()), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_serving_runs_in_the_oldest_bases_python(path):
    assert too_new(path.read_text("utf-8")) == []
    for module, name in imports(path):
        assert name not in NEWER.get(module, ()), f"{module}.{name}"


def test_every_source_can_be_compiled_by_the_oldest_bases_python():
    """As the Dockerfile does; what is for the compiler alone may import newer names."""
    for path in image_files(ROOT, "triton").values():
        if path.suffix == ".py":
            ast.parse(path.read_text("utf-8"), feature_version=(3, 10))
