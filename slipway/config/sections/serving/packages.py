"""Serving families of other packages: their sections, and the parts that later stages ask for.

A package that cannot be used has a problem instead, for the configs that name its container. All
other models keep working, because their deployments do not need the package.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import Any, TypeVar

from slipway.codes.code import Code
from slipway.config.fields import tag_of
from slipway.config.sections.base import Section
from slipway.errors import Problem, UserError

_Part = TypeVar("_Part")
_PLANNING = "planning"
_PARTS = (_PLANNING, "packaging", "starter", "programs")


class FamilyPackages:
    """The families that other packages bring, beside Slipway's own.

    An entry point is called `NAME` for a family's section, and `NAME.PART` for its other parts.
    """

    def __init__(self, own: Collection[str], entries: Iterable[EntryPoint]) -> None:
        self._entries: dict[str, list[EntryPoint]] = {}
        for entry in sorted(entries, key=lambda each: (_package(each), each.name)):
            self._entries.setdefault(entry.name.partition(".")[0], []).append(entry)
        self.sections: dict[str, type[Section]] = {}
        self.problems: dict[str, Problem] = {}
        for name, claims in sorted(self._entries.items()):
            try:
                self.sections[name] = _section(name, claims, is_own=name in own)
            except UserError as error:
                self.problems[name] = error.problems[0]

    def package_of(self, name: str) -> str | None:
        """Returns the package that brings a family; None for Slipway's own."""
        return _package(self._entries[name][0]) if name in self.sections else None

    def part(self, name: str, part: str, kind: type[_Part], default: _Part | None = None) -> _Part:
        """Returns a part of a family in `sections`, or the default of a package that has none.

        Raises `UserError` if the package's code does not load, or is something else.
        """
        entry = next((e for e in self._entries[name] if e.name == f"{name}.{part}"), None)
        if entry is None and default is not None:
            return default
        if entry is None:
            raise _refused(self._entries[name][0], f"and has no entry point `{name}.{part}`")
        found = _load(entry)
        if not isinstance(found, kind):
            raise _refused(
                entry, f"and {entry.value} is {type(found).__name__}, not {kind.__name__}"
            )
        return found

    def beside(
        self, own: Mapping[str, _Part], part: str, kind: type[_Part], default: _Part | None = None
    ) -> Mapping[str, _Part]:
        """Returns a registry: Slipway's own families, and `part` of those that can be used."""
        found = dict(own)
        for name in self.sections:
            try:
                found[name] = self.part(name, part, kind, default)
            except UserError as error:
                self.problems[name] = error.problems[0]
        return found


def _section(name: str, claims: Sequence[EntryPoint], *, is_own: bool) -> type[Section]:
    first, packages = claims[0], [*dict.fromkeys(map(_package, claims))]
    if is_own:
        raise _refused(first, "which is one of Slipway's own")
    if len(packages) > 1:
        raise _refused(first, f"and so does {', '.join(packages[1:])}")
    known = [name, *(f"{name}.{part}" for part in _PARTS)]
    unknown = [entry.name for entry in claims if entry.name not in known]
    if unknown or first.name != name:
        wrong = f"the unknown entry point `{unknown[0]}`" if unknown else f"no entry point `{name}`"
        raise _refused(first, f"and has {wrong}: known are {', '.join(known)}")
    section = _load(first)
    if isinstance(section, type) and issubclass(section, Section) and tag_of(section) == name:
        return section
    wanted = f'a Section with the field `container: Literal["{name}"]`'
    raise _refused(first, f"and {first.value} is not {wanted}")


def _load(entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except Exception as error:  # whatever the package's own code raises
        reason = f"{type(error).__name__}: {error}"
        raise _refused(entry, f"and {entry.value} does not load: {reason}") from error


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value


def _refused(entry: EntryPoint, reason: str) -> UserError:
    name = entry.name.partition(".")[0]
    return UserError.of(
        Code.FAMILY_PACKAGE,
        f"the package {_package(entry)} brings the container `{name}`, {reason}",
        "Correct the package, or uninstall it.",
    )
