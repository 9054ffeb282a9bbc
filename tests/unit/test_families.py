"""Serving families are rooms, which shared code never names; packages name their modules."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

import pytest

from slipway.config.sections.serving import Serving
from slipway.config.starters import STARTERS
from slipway.planning.families import FAMILIES
from slipway.publishing.families import PACKAGING

ROOT = Path(__file__).parents[2]
NAMES = ("tensorrt", "lmi", "triton", "neuron", "custom")
# Modules whose purpose is to name every family.
REGISTRIES = (
    "slipway/config/sections/serving/__init__.py",
    "slipway/config/starters/__init__.py",
    "slipway/planning/families/__init__.py",
    "slipway/publishing/families/__init__.py",
    "embedded_aws/hosting/families/__init__.py",
)
# Shared modules that say a family's name, each with the reason.
EXCEPTIONS: Mapping[str, str] = {
    "slipway/cli/triton_repository.py": "the command writes repositories of Triton",
    "slipway/cli/init_checkpoint.py": "LMI's settings alone follow from a checkpoint",
    "slipway/sizing/candidates.py": "engines of LMI alone were measured",
    "slipway/extras.py": "triton is an extra's name",
    "slipway/cli/plan_text.py": "the plan has a section for NeuronCores",
    "slipway/facts/images.py": "neuron is a kind of accelerator",
    "slipway/facts/instances.py": "neuron is a kind of accelerator",
    "slipway/planning/images.py": "neuron is a kind of accelerator",
    "slipway/planning/rules/hardware.py": "neuron is a kind of accelerator",
    "slipway/importing/sources.py": "what is imported decides the family",
    "slipway/image_sources/__init__.py": "the table of the files of each image",
}
_ROOM = re.compile(
    rf"(slipway\.(planning|publishing)\.families|slipway\.config\.(sections\.serving|starters)"
    rf"|slipway\.facts|slipway\.importing|slipway\.embedded_aws\.hosting\.families)\.({'|'.join(NAMES)})\b"
)


def named(source: str) -> Iterator[str]:
    """Yields where a module names a family: by an import, a section's class or a text."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and _ROOM.match(node.module):
            yield f"{node.lineno}: imports {node.module}"
        elif isinstance(node, ast.Constant) and node.value in NAMES:
            yield f"{node.lineno}: says {node.value!r}"


def shared_modules() -> Iterator[Path]:
    for package in ("slipway", "stacks", "embedded_aws"):
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            is_room = any(part in NAMES for part in parts)
            if not is_room and path.relative_to(ROOT).as_posix() not in REGISTRIES:
                yield path


@pytest.mark.parametrize(
    "path", list(shared_modules()), ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_shared_code_names_no_family(path: Path) -> None:
    found = list(named(path.read_text("utf-8")))
    is_exception = path.relative_to(ROOT).as_posix() in EXCEPTIONS
    assert bool(found) == is_exception, found


@pytest.mark.parametrize(
    "planted",
    [
        "from slipway.planning.families.lmi.deployment import Lmi",
        "def f():\n    from slipway.config.sections.serving.neuron import NeuronServing",
        "from slipway.facts.tensorrt.releases import tensorrt_releases",
        "if deployment.container == 'triton':\n    pass",
        "if config.serving.container in ('custom', 'x'):\n    pass",
    ],
)
def test_a_planted_name_is_found(planted: str) -> None:
    assert list(named(planted)) != []


def test_every_registry_has_every_family_of_the_schema_and_each_has_its_rooms() -> None:
    union = get_args(get_args(Serving)[0])
    containers = {get_args(each.model_fields["container"].annotation)[0] for each in union}
    assert containers == set(NAMES)
    for registry in (STARTERS, FAMILIES, PACKAGING):
        assert set(registry) == set(NAMES)
    programs = ROOT / "embedded_aws" / "hosting" / "families"
    for name in NAMES:
        assert (ROOT / "slipway" / "planning" / "families" / name / "deployment.py").is_file()
        for folder in ("slipway/config/sections/serving", "slipway/config/starters"):
            assert (ROOT / folder / f"{name}.py").is_file()
        assert (programs / name).is_dir() or (programs / f"{name}.py").is_file()


@pytest.mark.parametrize("package", ["embedded_aws/cloudformation", "embedded_aws/monitoring"])
def test_the_docstring_of_a_package_names_its_modules(package):
    directory = ROOT / package
    docstring = ast.get_docstring(ast.parse((directory / "__init__.py").read_text("utf-8")))
    modules = {path.stem for path in directory.glob("*.py")} - {"__init__"}
    assert docstring is not None
    assert {name for name in modules if f"`{name}`" not in docstring} == set()
