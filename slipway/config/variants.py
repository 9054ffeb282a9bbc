"""The documents of variants that serve a model of their own."""

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


def variant_documents(document: Document) -> Iterator[tuple[str, Document]]:
    """Yields each variant with sections of its own, and the config of an endpoint of it alone.

    The sections are laid over the file's. Each value keeps its place, and what is no mapping is
    left to the check of the file.
    """
    variants = _at(document, _VARIANTS)
    fields: list[FieldPath] = [
        (*_VARIANTS, index) for index in range(len(variants) if isinstance(variants, list) else 0)
    ]
    for field in (*fields, _SHADOW):
        own = document.section(field)
        name = SHADOW_VARIANT_NAME if field == _SHADOW else own.content.get("name")
        sections = [key for key in OWN_SECTIONS if isinstance(own.content.get(key), dict)]
        if isinstance(name, str) and any(own.content[key] for key in sections):
            yield name, _alone(document, own.only(*sections), own, is_shadow=field == _SHADOW)


def _alone(document: Document, sections: Document, own: Document, *, is_shadow: bool) -> Document:
    base = document.without(_VARIANTS, _SHADOW)
    if is_shadow:
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
