"""`make pictures`: writes what follows from something else in docs/pictures.

- The plots follow from the committed results of the benchmarks. They are written whole.
- The other pictures are written by hand. Only the style is shared, and is put into each. `demo.svg`
  shows lines of `demo.txt`, a recorded run of `make demo`; a test compares them.

Nothing of the machine is read, so that the files are the same everywhere; a test compares them.
"""

from pathlib import Path

from tools.pictures.drawing import with_style
from tools.pictures.plots import plots

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"


def pictures() -> dict[str, str]:
    """Returns the text that each file of docs/pictures should have, by its name."""
    by_hand = {path.name: with_style(path.read_text("utf-8")) for path in FOLDER.glob("*.svg")}
    written = {f"{name}.svg": picture for name, picture in plots().items()}
    return {**by_hand, **written}
