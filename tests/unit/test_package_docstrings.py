"""The docstrings that lead a reader through a package name each of its modules."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("package", ["embedded_aws/cloudformation", "embedded_aws/monitoring"])
def test_the_docstring_of_a_package_names_its_modules(package: str) -> None:
    directory = ROOT / package
    docstring = ast.get_docstring(ast.parse((directory / "__init__.py").read_text("utf-8")))
    modules = {path.stem for path in directory.glob("*.py")} - {"__init__"}
    assert docstring is not None
    assert {name for name in modules if f"`{name}`" not in docstring} == set()
