"""Packages that bring a serving family, and cannot be used: the report names package and reason."""

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import slipway.config.editor_schema
import slipway.config.load
import slipway.config.sections.serving
import slipway.families
from slipway.codes.code import Code
from slipway.config.family_entries import family_entries
from slipway.config.sections.serving.packages import FamilyPackages
from slipway.embedded_aws.hosting.families import programs
from slipway.planning.families.family import Family
from slipway.publishing.packaging import Packaging
from tests.support.projects import config_text, refusal, write_project

SOURCE = """
from typing import Literal
from slipway.families import ContainerProgram, Family, Section
from slipway.planning.families.custom.deployment import Custom

class TableServing(Section):
    container: Literal["table"]

FAMILY = Family(Custom)
PROGRAMS = {"slipway/lmi": ContainerProgram(("true",))}
NOTHING = {}
"""
ENTRIES = {"table": "TableServing", "table.planning": "FAMILY", "table.programs": "PROGRAMS"}
REMEDY = "Correct the package, or uninstall it."
NO_SECTION = 'is not a Section with the field `container: Literal["table"]`'
KNOWN = "known are table, table.planning, table.packaging, table.starter, table.programs"


class Site:
    """A folder of installed packages, on Python's path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def install(
        self, package: str, entries: Mapping[str, str] = ENTRIES, source: str = SOURCE
    ) -> None:
        module = package.replace("-", "_")
        info = self._folder / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = {module}:{value}\n" for name, value in entries.items()]
        (info / "entry_points.txt").write_text("".join(["[slipway.families]\n", *lines]))
        (self._folder / f"{module}.py").write_text(source)

    def load(self) -> FamilyPackages:
        importlib.invalidate_caches()
        return FamilyPackages(["lmi", "custom"], family_entries.__wrapped__())


@pytest.fixture
def site(tmp_path, monkeypatch):
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    for module in ("slipway_table", "other_table"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    return Site(folder)


def test_without_packages_there_is_nothing_and_every_public_name_is_there():
    packages = FamilyPackages(["lmi"], family_entries())
    assert (packages.sections, packages.problems) == ({}, {})
    assert packages.beside({"lmi": 1}, "planning", int) == {"lmi": 1}
    assert all(hasattr(slipway.families, name) for name in slipway.families.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Lmi'"):
        slipway.families.Lmi  # noqa: B018  # the access raises


def test_a_package_stands_beside_slipways_own(site):
    site.install("slipway-table")
    packages = site.load()
    assert packages.sections["table"].__name__ == "TableServing"
    registry = packages.beside({"lmi": None}, "planning", Family)
    assert list(registry) == ["lmi", "table"]
    assert isinstance(registry["table"], Family)
    packaging = Packaging()
    assert packages.beside({}, "packaging", Packaging, packaging) == {"table": packaging}
    assert packages.package_of("table") == "slipway-table 1.0"
    assert packages.package_of("lmi") is None
    assert packages.problems == {}


NO_TABLE = SOURCE.replace('Literal["table"]', 'Literal["tables"]')


@pytest.mark.parametrize(
    ("installed", "reason"),
    [
        (
            {"source": "import of_no_package"},
            "and slipway_table:TableServing does not load: ModuleNotFoundError: No module named "
            "'of_no_package'",
        ),
        (
            {"entries": ENTRIES | {"table": "Missing"}},
            "and slipway_table:Missing does not load: AttributeError: module 'slipway_table' has "
            "no attribute 'Missing'",
        ),
        ({"source": NO_TABLE}, f"and slipway_table:TableServing {NO_SECTION}"),
        ({"entries": ENTRIES | {"table": "NOTHING"}}, f"and slipway_table:NOTHING {NO_SECTION}"),
        (
            {"entries": ENTRIES | {"table.planing": "FAMILY"}},
            f"and has the unknown entry point `table.planing`: {KNOWN}",
        ),
        ({"entries": {"table.planning": "FAMILY"}}, f"and has no entry point `table`: {KNOWN}"),
        ({"entries": {"table": "TableServing"}}, "and has no entry point `table.planning`"),
        (
            {"entries": ENTRIES | {"table.planning": "NOTHING"}},
            "and slipway_table:NOTHING is dict, not Family",
        ),
        (
            {"entries": {"lmi": "TableServing", "lmi.planning": "FAMILY"}},
            "which is one of Slipway's own",
        ),
    ],
)
def test_a_package_that_cannot_be_used_is_named_with_the_reason(site, installed, reason):
    site.install("slipway-table", **installed)
    packages = site.load()
    assert packages.beside({}, "planning", Family) == {}
    ((name, problem),) = packages.problems.items()
    assert (problem.code, problem.remedy) == (Code.FAMILY_PACKAGE, REMEDY)
    assert problem.message == (
        f"the package slipway-table 1.0 brings the container `{name}`, {reason}"
    )


def test_no_two_packages_have_one_name(site):
    site.install("slipway-table")
    site.install("other-table")
    packages = site.load()
    assert packages.sections == {}
    assert packages.problems["table"].message == (
        "the package other-table 1.0 brings the container `table`, and so does slipway-table 1.0"
    )


def test_only_its_configs_and_the_schema_are_refused(site, tmp_path, monkeypatch, slipway_command):
    site.install("slipway-table", source="import of_no_package")
    packages = site.load()
    for module in (slipway.config.load, slipway.config.editor_schema):
        monkeypatch.setattr(module, "PACKAGES", packages)
    monkeypatch.setattr(slipway.config.sections.serving, "PACKAGES", packages)
    (tmp_path / "project").mkdir()
    text = config_text("tiny")
    project = write_project(tmp_path / "project", {"tiny": text})
    monkeypatch.chdir(project)
    path = project / "model_configs" / "table.yaml"
    table = text.replace("container: tensorrt", "container: table")
    path.write_text(table.replace("name: tiny", "name: table"))

    slipway_command.done("validate", "tiny")

    reason = (
        "the package slipway-table 1.0 brings the container `table`, and "
        "slipway_table:TableServing does not load: ModuleNotFoundError: No module named "
        "'of_no_package' [SW487]\n"
        f"    {REMEDY}\n"
    )
    said = slipway_command.refused("validate", "table")
    assert f": serving.container: {reason}" in said
    assert "is not known here" not in said
    for command in (["schema"], ["init", "x", "--container", "table"]):
        assert slipway_command(*command) == (1, "", f"1 problem\n- {reason}")


def test_a_program_of_another_image_is_refused(site, monkeypatch):
    site.install("slipway-table")
    monkeypatch.setattr(slipway.config.sections.serving, "PACKAGES", site.load())
    monkeypatch.setattr("slipway.embedded_aws.hosting.families.family_entries", lambda: [None])
    assert str(refusal(programs)) == (
        "1 problem\n"
        "- the package slipway-table 1.0 brings a program for images of slipway/lmi, which have "
        "one already [SW487]\n"
        "    Give its images another repository."
    )
