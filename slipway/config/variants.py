"""The documents of variants and of fallback types that serve a model of their own."""

from collections.abc import Iterator
from typing import Any

from slipway.config.document import Document
from slipway.config.sections.endpoint import OWN_SECTIONS, SHADOW_VARIANT_NAME
from slipway.errors import FieldPath

# A value that differs there replaces the section that it is in, whose other fields are about it.
_KINDS: tuple[FieldPath, ...] = (("serving", "container"), ("artifacts", "weights", "source"))
# Where a variant names one, the file's other sources of a release are left out.
_OTHERS = {"weights": ("release",), "release": ("weights", "compile")}
_VARIANTS, _SHADOW = ("endpoint", "variants"), ("endpoint", "shadow")
_OVERRIDES: FieldPath = ("endpoint", "model_overrides")
# One type needs no time for a second one.
_OF_POOLS: FieldPath = ("endpoint", "instance_provision_timeout_seconds")


def variant_documents(document: Document) -> Iterator[tuple[str, Document]]:
    """Yields each variant with sections of its own, and the config of an endpoint of it alone.

    A model of fallback types has the name of its first type, which no variant can have.

    The sections are laid over the file's. Each value keeps its place, and what is no mapping is
    left to the check of the file.
    """
    fields: list[FieldPath] = [
        (*section, index)
        for section in (_VARIANTS, _OVERRIDES)
        if isinstance(found := _at(document, section), list)
        for index in range(len(found))
    ]
    for field in (*fields, _SHADOW):
        own = document.section(field)
        name = SHADOW_VARIANT_NAME if field == _SHADOW else own.content.get("name")
        if field[:2] == _OVERRIDES:
            types = own.content.get("instances")
            name = types[0] if isinstance(types, list) and types else None
        sections = [key for key in OWN_SECTIONS if isinstance(own.content.get(key), dict)]
        if isinstance(name, str) and any(own.content[key] for key in sections):
            yield name, _alone(document, own.only(*sections), own, field[:2])


def _alone(document: Document, sections: Document, own: Document, place: FieldPath) -> Document:
    base = document.without(_VARIANTS, _SHADOW, _OVERRIDES)
    if place == _OVERRIDES:
        base = base.without(_OF_POOLS)
    if place == _SHADOW:
        # It has a fixed count, and no reservation.
        base = base.without(("autoscaling",), ("endpoint", "capacity_reservation_arn"))
    for kind in _KINDS:
        if _at(sections, kind) not in (None, _at(base, kind)):
            base = base.without(kind[:-1])
    for source, others in _OTHERS.items():
        if _at(sections, ("artifacts", source)) is not None:
            base = base.without(*(("artifacts", other) for other in others))
    machines = own.nested("endpoint", "instances", "instance_count")
    return sections.over(machines.over(base))


def _at(document: Document, field: FieldPath) -> Any:
    return document.section(field[:-1]).content.get(str(field[-1]))
