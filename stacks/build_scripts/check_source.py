"""Checks that the files of a build's source are those whose digest the build was given.

It runs alone, before any of these files runs. `SHA256SUMS` lists every other file, and its own
SHA-256 is the digest.
"""

import hashlib
import os
import sys
from pathlib import Path

_LIST = "SHA256SUMS"


def main(root: Path, digest: str) -> str | None:
    """Returns what is wrong with the files below a folder; None if nothing is."""
    listed = (root / _LIST).read_bytes()
    if hashlib.sha256(listed).hexdigest() != digest:
        return f"{_LIST} has another digest than {digest}"
    expected = dict(line.split("  ", 1)[::-1] for line in listed.decode().splitlines())
    found = {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file() and path.name != _LIST
    }
    wrong = sorted({name for name, _ in set(expected.items()) ^ set(found.items())})
    return f"other content than was sent: {', '.join(wrong)}" if wrong else None


if __name__ == "__main__":
    sys.exit(main(Path.cwd(), os.environ["SLIPWAY_SOURCE"]))
