"""Colours on a terminal, and none elsewhere. No meaning is told by a colour alone.

The scheme of every command: headings are bold, and a word that tells a state has its colour.
"""

import os
import re
import sys
from typing import Final, TextIO

import typer

_STATE: Final = re.compile(
    r"""\s*(?:
    (?P<red>\d+\ problems?|TROUBLE|ALARM|Failed|\w*(?:FAILED|ROLLBACK)\w*|replaced\ with\ a\ gap
        |refused\ by\ AWS|needs\ destroy|removed|renamed)
    |(?P<yellow>CHANGING|NOTE|note|warning|not\ seen|INSUFFICIENT_DATA|\w+_IN_PROGRESS|changes
        |Creating|Updating|SystemUpdating|RollingBack|Deleting|new\ fleet|unknown|widened)
    |(?P<green>OK|ok|in\ service|InService|\w+_COMPLETE|in\ place)
    )(?![\w-])""",
    re.VERBOSE,
)
_FORCING: Final = ("FORCE_COLOR", "CLICOLOR_FORCE")


def is_forced() -> bool:
    """Returns whether the user wants colours also in files and pipes."""
    forced = any(os.environ.get(name, "0") not in ("", "0") for name in _FORCING)
    return forced and not os.environ.get("NO_COLOR")


def heading(text: str, stream: TextIO | None = None) -> str:
    """Returns text in bold, where the stream (without one, standard output) shows it."""
    return typer.style(text, bold=True) if text and _shows(stream or sys.stdout) else text


def state(text: str, stream: TextIO | None = None) -> str:
    """Returns text whose first words have the colour of the state that they tell, if any."""
    found = _STATE.match(text)
    if found is None or not _shows(stream or sys.stdout):
        return text
    return typer.style(found[0], fg=found.lastgroup, bold=True) + text[found.end() :]


def _shows(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    return is_forced() or (os.environ.get("TERM") != "dumb" and stream.isatty())
