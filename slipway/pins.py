"""Which version of Slipway the files of a project pin."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import slipway
from slipway.codes.code import Code
from slipway.errors import Kind, Location, Problem

_FILES: Final = ("pyproject.toml", "requirements*.txt", "requirements*.in", "uv.lock")
_PIN: Final = re.compile(
    r"""^[ "'\t]*slipway(?:\[[^\]\n]*\])?\s*==\s*(?P<pin>[\w.+!-]+)"""
    r"""|^[^#\n]*\bslipway-(?P<wheel>[\w.+!]+)-[\w.]+-[\w.]+-[\w.]+\.whl"""
    r"""|^name = "slipway"\nversion = "(?P<lock>[^"\n]+)"$""",
    re.MULTILINE,
)


def pinned_versions(root: Path) -> Mapping[Location, str]:
    """Returns the versions that a project pins, by their places."""
    return {place: version for pattern in _FILES for place, version in _pins(root, pattern)}


def _pins(root: Path, pattern: str) -> Iterator[tuple[Location, str]]:
    for path in sorted(root.glob(pattern)):
        try:
            text = path.read_text("utf-8", errors="replace")
        except OSError:
            continue  # what installs it has the report
        for found in _PIN.finditer(text):
            version = found["pin"] or found["wheel"] or found["lock"]
            yield Location(path.name, text.count("\n", 0, found.start()) + 1, 1), version


def other_pins(root: Path) -> Iterator[Problem]:
    """Yields each pin of a version that does not run: its words may be unknown to this one."""
    for place, version in pinned_versions(root).items():
        if version != slipway.__version__:
            yield Problem(
                Code.ANOTHER_VERSION_PINNED,
                Kind.STATE,
                f"the project pins slipway {version}, and slipway {slipway.__version__} runs",
                "Install what the project pins; or write the config for the version that runs.",
                location=place,
            )
