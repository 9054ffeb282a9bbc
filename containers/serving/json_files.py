"""JSON files beside a model, checked field by field.

A worker may run in an older Python than the program: this keeps to Python 3.10 and the standard
library.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from containers.serving.predictor import ModelLoadError


class Field(NamedTuple):
    """The values that a field may have, and their words, as in "must be true or false"."""

    expectation: str
    accepts: Callable[[object], bool]


def is_whole(value: object, least: int, most: float = float("inf")) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def whole_number(most: int) -> Field:
    """Returns a field for a number from 1 to `most`."""
    return Field(f"a whole number from 1 to {most}", lambda value: is_whole(value, 1, most))


def one_of(allowed: Iterable[str]) -> Field:
    names = tuple(allowed)
    return Field(
        f"one of {', '.join(names)}", lambda value: isinstance(value, str) and value in names
    )


def text(expectation: str, accepts: Callable[[str], object]) -> Field:
    return Field(expectation, lambda value: isinstance(value, str) and bool(accepts(value)))


POSITIVE: Final = Field("a positive whole number", lambda value: is_whole(value, 1))
TEXTS: Final = Field(
    "an array of texts",
    lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
)


# Any: JSON.
def problems_with(document: Mapping[str, Any], fields: Mapping[str, Field]) -> list[str]:
    """Returns a problem for each field whose value is not accepted; a missing value is null."""
    return [
        f"{name} must be {field.expectation}, not {json.dumps(document.get(name))}"
        for name, field in fields.items()
        if not field.accepts(document.get(name))
    ]


# Any: JSON.
def read_object(path: Path) -> dict[str, Any]:
    """Returns the JSON object in a file; raises `ModelLoadError` if there is none."""
    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise ModelLoadError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ModelLoadError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(document, dict):
        raise ModelLoadError(f"{path} must hold a JSON object")
    return document


@dataclass(frozen=True)
class DescriptionFile:
    """A file that a compile job writes, and that describes the compiled files beside it.

    This container reads and writes the one `format_version`. `subject` is the knowledge that is
    lost without the file, as in "what the engine was built for", and `remedy` the end of every
    message. All `fields` are required. `contradictions` returns the problems of fields that are
    valid alone but not together.
    """

    name: str
    format_version: int
    subject: str
    remedy: str
    fields: Mapping[str, Field]
    contradictions: Callable[[Mapping[str, Any]], list[str]] = lambda _document: []

    # Any: JSON.
    def write(self, model_dir: Path, document: Mapping[str, Any]) -> None:
        versioned = {"format_version": self.format_version} | dict(document)
        text = json.dumps(versioned, indent=2, ensure_ascii=False) + "\n"
        (model_dir / self.name).write_text(text, encoding="utf-8")

    def read(self, model_dir: Path) -> dict[str, Any]:
        """Returns the fields of the file, or raises one `ModelLoadError` with every problem."""
        path = model_dir / self.name
        if not path.exists():
            raise ModelLoadError(
                f"{model_dir} lacks {self.name}, which tells {self.subject}: {self.remedy}"
            )
        document = read_object(path)
        version = document.pop("format_version", None)
        if not is_whole(version, self.format_version, self.format_version):
            raise ModelLoadError(
                f"{path} has format_version {json.dumps(version)}, and this container reads "
                f"{self.format_version}: {self.remedy}"
            )
        present = {name: field for name, field in self.fields.items() if name in document}
        problems = [f"{name} is missing" for name in self.fields if name not in document]
        problems += [f"{name} is not a field of it" for name in document if name not in self.fields]
        problems += problems_with(document, present)
        problems = problems or self.contradictions(document)
        if problems:
            raise ModelLoadError(f"{path}: {'; '.join(problems)}; {self.remedy}")
        return document
