"""`make pictures`: the documentation's pictures, drawn by code into docs/pictures.

Each module beside this one has PICTURES, the pictures that it draws; their names are the names of
their files. `kit` has what they are made of. A drawing reads no clock, no font and nothing of the
machine, so that the files are the same everywhere; a test compares them.
"""

import importlib
import pkgutil
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"


class Picture(Protocol):
    """What can be drawn into a file."""

    @property
    def name(self) -> str:
        """Returns the name of its file, without the ending."""

    def svg(self) -> str:
        """Returns the SVG document."""


def drawn() -> dict[str, str]:
    """Returns the text of each file of docs/pictures, by its name."""
    files: dict[str, str] = {}
    for module in pkgutil.iter_modules(__path__):
        if module.ispkg or module.name == "__main__":
            continue
        pictures: Iterable[Picture] = importlib.import_module(f"{__name__}.{module.name}").PICTURES
        for picture in pictures:
            file = f"{picture.name}.svg"
            if file in files:
                raise ValueError(f"two pictures are called {picture.name}")
            files[file] = picture.svg()
    return files


def stale(files: dict[str, str], folder: Path = FOLDER) -> list[str]:
    """Returns the names of files that are missing, differ, or are drawn by no module.

    Args:
        files: as `drawn` returns them.
        folder: where they should be.
    """
    there = {path.name: path.read_text("utf-8") for path in folder.glob("*.svg")}
    return sorted(
        name for name in files.keys() | there.keys() if files.get(name) != there.get(name)
    )
