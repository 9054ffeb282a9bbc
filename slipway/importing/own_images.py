"""Images that Slipway builds: their variables say again what the config said."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from slipway.facts.instances import InstanceFacts, instance_types
from slipway.importing.call import Call
from slipway.importing.draft import Draft, FieldName, Guess, KnownFacts, Setting, alarms_of

_IMAGE = re.compile(r"/slipway/(?:[a-z][a-z0-9]*/)?([a-z]+):([\w.-]+)$")
LONGEST_GRAPH = Guess("the longest graph. Add `sequence_lengths` where there are shorter ones too.")
_NO_VARIABLES = "the section has no field for a variable of this name."


@dataclass(frozen=True)
class OwnImage:
    """An image that Slipway built: its family, and the tag, which has the base of the image."""

    family: str
    tag: str


def own_image(uri: str) -> OwnImage | None:
    """Returns what the address of an image says; None for an image that Slipway did not build."""
    found = _IMAGE.search(uri)
    return OwnImage(found[1], found[2]) if found else None


class Variables:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._left = dict(environment)

    def take(self, fields: Mapping[str, str]) -> dict[str, Any]:
        """Returns the fields of a section that variables tell: whole numbers, or texts."""
        found: dict[str, Any] = {}
        for variable, name in fields.items():
            if (value := self._left.pop(variable, None)) is not None:
                found[name] = int(value) if re.fullmatch(r"[0-9]{1,15}", value) else value
        return found

    def drop(self, *names: str) -> None:
        for name in names:
            self._left.pop(name, None)

    @property
    def rest(self) -> dict[str, str]:
        return dict(self._left)

    def left_out(self) -> list[Setting]:
        """Returns the rest, for a section that has no field for variables."""
        return [Setting(name, value, _NO_VARIABLES) for name, value in self._left.items()]


@dataclass(frozen=True)
class OwnSection:
    serving: Mapping[str, Any]
    target: str | None
    guesses: Mapping[FieldName, Guess] = field(default_factory=dict)
    left_out: Sequence[Setting] = ()


# Told the variables, the tag of the image and the instance type.
SectionOf = Callable[[Variables, str, InstanceFacts | None], OwnSection]


def own_draft(
    call: Call,
    given: KnownFacts,
    guesses: Mapping[FieldName, Guess],
    tag: str,
    section_of: SectionOf,
) -> Draft:
    facts = instance_types().get(given.instance or "")
    own = section_of(Variables(call.environment), tag, facts)
    alarms, more = alarms_of(given, call.origin)
    path = f"build/{given.name}"
    release = {"path": path} if own.target is None else {"path": path, "target": own.target}
    more["artifacts", "release", "path"] = Guess(
        f"a folder for the compiled files, which lie in {call.model_data}."
    )
    more["artifacts", "release", "target"] = Guess("the device of the instance type.")
    content = given.content(own.serving, alarms, artifacts={"release": release})
    return Draft(
        content,
        {**guesses, **own.guesses, **more},
        left_out=[*call.left_out, *own.left_out],
    )
