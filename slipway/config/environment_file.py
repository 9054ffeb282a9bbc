"""Reads environments.yaml: its environments, and what is for all of them."""

from collections.abc import Iterator
from pathlib import Path

from slipway.codes.code import Code
from slipway.config.document import Document, read_document
from slipway.config.names import DEFAULTS_KEY, ENVIRONMENTS_FILE, PROJECT_KEY, SHARED_KEYS
from slipway.errors import FieldPath, Kind, Location, Problem, did_you_mean


def read_environments(root: Path) -> Document:
    """Reads the file of a project; raises `UserError`."""
    return read_document(root / ENVIRONMENTS_FILE, ENVIRONMENTS_FILE)


def names_in(document: Document) -> list[str]:
    """Returns the environments. One of an older file may be called `policies` or `defaults`."""
    return [
        key
        for key, value in document.content.items()
        if key not in SHARED_KEYS
        or (key != PROJECT_KEY and isinstance(value, dict) and "account" in value)
    ]


def misspelt_keys(document: Document) -> Iterator[Problem]:
    """Yields keys that were meant for all environments: unread policies would refuse nothing."""
    for name in names_in(document):
        hint = did_you_mean(name, SHARED_KEYS)
        if hint and "account" not in document.section((name,)).content:
            message, remedy = "is no environment: it has no `account`", f"{hint}Or add `account`."
            yield Problem(Code.UNKNOWN_FIELD, Kind.SHAPE, message, remedy, (name,))


def laid_over_shared(document: Document, name: str, key: str) -> Document:
    own = document.section((name, key))
    return own if key in names_in(document) else own.over(document.section((key,)))


def load_defaults(name: str, root: Path) -> Document:
    """Returns the values that models take in an environment where their files say nothing."""
    return laid_over_shared(read_environments(root), name, DEFAULTS_KEY)


def place_in_environment(name: str, field: FieldPath, root: Path) -> tuple[FieldPath, Location]:
    """Returns where the file has a field: the environment's own, or the one for all."""
    document, own = read_environments(root), (name, *field)
    is_shared = own not in document.positions and field in document.positions
    path = field if is_shared else own
    return path, document.locate(path)
