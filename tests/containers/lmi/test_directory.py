"""The handler's directory stands alone, on the Python of the oldest image."""

import ast
import sys

import pytest

from tests.containers.lmi.handler import HANDLER

FILES = sorted(HANDLER.glob("*.py"))
IN_THE_IMAGES = {
    "deepspeed", "djl_python", "fastertransformer", "numpy", "torch", "transformers",
}  # fmt: skip


@pytest.mark.parametrize("path", FILES, ids=str)
def test_python_3_8_reads_it(path):
    ast.parse(path.read_text(), feature_version=(3, 8))
    # Without it, annotations like `int | None` are evaluated, which 3.8 cannot.
    assert path.name == "__init__.py" or "from __future__ import annotations" in path.read_text()


@pytest.mark.parametrize("path", FILES, ids=str)
def test_it_imports_only_what_lies_beside_it_or_in_the_images(path):
    allowed = {path.stem for path in FILES} | IN_THE_IMAGES | set(sys.stdlib_module_names)
    imported = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(str(node.module).partition(".")[0])
    assert imported <= allowed


def test_no_file_shadows_a_library():
    """The directory comes first on the path: `requests.py` would be found by every library."""
    names = {path.stem for path in FILES} - {"__init__", "model"}
    assert all(name.startswith("slipway_") for name in names)
