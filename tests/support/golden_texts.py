"""Golden texts: a file with a section for each case, which has what a command says in it."""

import difflib
import re
from collections.abc import Iterable
from pathlib import Path

import pytest


def read_golden(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    parts = path.read_text("utf-8").removeprefix("=== ").split("\n\n=== ")
    heads = (part.partition("\n") for part in parts)
    return {head: rest.rstrip("\n") for head, _, rest in heads}


def compare_golden(
    request: pytest.FixtureRequest, path: Path, names: Iterable[str], name: str, text: str
) -> None:
    """Compares a case's text with its section; with `--update-golden` writes the section anew.

    The file has the sections of all names, in their order, and no others.
    """
    golden, text = read_golden(path), text.rstrip("\n")
    if request.config.getoption("--update-golden"):
        golden = {**golden, name: text}
        shown = [f"=== {each}\n{golden[each]}\n" for each in names if each in golden]
        path.write_text("\n".join(shown), "utf-8")
        golden = read_golden(path)
    assert text == golden[name]
    assert set(golden) <= {*names}


def changed_lines(before: str, after: str) -> str:
    """Returns the lines that differ, each group of them after a line `@`."""
    pair = (each.rstrip("\n").splitlines() for each in (before, after))
    differing = list(difflib.unified_diff(*pair, n=0, lineterm=""))[2:]
    return re.sub("(?m)^@@.*", "@", "\n".join(differing))
