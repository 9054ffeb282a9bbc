"""The shared parts of refresh scripts: packages as sources, and tables with readable diffs."""

import datetime
import importlib.metadata
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import botocore.session
import yaml
from botocore.model import StringShape

FACTS = Path(__file__).parents[2] / "slipway" / "facts"


class SourceError(Exception):
    """A source is missing or has changed; the message says what to do."""


def by_hand(name: str) -> Mapping[str, Any]:
    """Returns the facts of a YAML file of this folder, which people write."""
    content: Mapping[str, Any] = yaml.safe_load(Path(__file__).with_name(name).read_text("utf-8"))
    return content


def package_version(name: str) -> str:
    """Returns the installed version of a distribution; raises `SourceError`."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        raise SourceError(
            f"the package {name} is not installed; install requirements-dev.txt"
        ) from None


def package_file(name: str, path: str) -> Path:
    """Returns a file of an installed distribution, which is not imported; raises `SourceError`."""
    version = package_version(name)
    found = Path(str(importlib.metadata.distribution(name).locate_file(path)))
    if not found.is_file():
        raise SourceError(f"{name} {version} has no {path}: find out where the data went")
    return found


def hosting_instance_types() -> list[str]:
    """Returns the names that hosting accepts: botocore's ProductionVariantInstanceType, sorted."""
    model = botocore.session.Session().get_service_model("sagemaker")
    shape = model.shape_for("ProductionVariantInstanceType")
    if not isinstance(shape, StringShape):
        raise SourceError("botocore's ProductionVariantInstanceType is no longer a list of names")
    return sorted(shape.enum)


def render(table: Mapping[str, Any], *, levels: int) -> str:
    """Returns a table as JSON with one entry per line; keys keep their order.

    `levels` is how deep objects are written over several lines. A list stays on one line, except at
    the top level.
    """
    return _render(table, levels, 0) + "\n"


def _render(value: Any, levels: int, depth: int) -> str:
    inner, outer = "  " * (depth + 1), "  " * depth
    if isinstance(value, Mapping) and value and depth < levels:
        rows = [
            f"{inner}{json.dumps(key)}: {_render(item, levels, depth + 1)}"
            for key, item in value.items()
        ]
        return "{\n" + ",\n".join(rows) + f"\n{outer}}}"
    if isinstance(value, list) and value and depth == 1:
        return "[\n" + ",\n".join(inner + json.dumps(item) for item in value) + f"\n{outer}]"
    return json.dumps(value)


def run(path: Path, make: Callable[[], Mapping[str, Any]], *, levels: int) -> int:
    """Writes a table with its date, unless only that would change; returns the exit code."""
    try:
        content = make()
    except SourceError as error:
        print(f"Not refreshed: {path.name}: {error}.", file=sys.stderr)
        return 1
    if path.exists():
        text = path.read_text("utf-8")
        if render({"as_of": json.loads(text)["as_of"], **content}, levels=levels) == text:
            print(f"{path.name}: nothing changed.")
            return 0
    today = datetime.datetime.now(datetime.UTC).date()
    path.write_text(render({"as_of": today.isoformat(), **content}, levels=levels), "utf-8")
    print(f"{path.name}: written anew; review the diff.")
    return 0
