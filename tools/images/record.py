"""Which images this machine could build, in the user's cache."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from tools.installs import InstallError, cache_directory


def record(names: Iterable[str], environ: Mapping[str, str]) -> None:
    images = recorded(environ) | set(names)
    file = _file(environ)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(sorted(images)), "utf-8")


def recorded(environ: Mapping[str, str]) -> set[str]:
    try:
        return set(json.loads(_file(environ).read_text("utf-8")))
    except (InstallError, FileNotFoundError):
        return set()


def _file(environ: Mapping[str, str]) -> Path:
    return cache_directory(environ) / "images" / "built.json"
