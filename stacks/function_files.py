"""The files of a Lambda function's package."""

import shutil
from pathlib import Path

_FUNCTIONS = Path(__file__).with_name("functions")
_IMPORTED = {"beside_others": ("endpoint_update",)}
"""What a function imports of another function."""


def copy_function(module: str, folder: Path) -> None:
    """Copies what the function of a module imports into a folder, without the caches beside it."""
    name = module.partition(".")[0]
    names = (name, *_IMPORTED.get(name, ()))
    own = (pattern for each in names for pattern in (f"{each}.py", f"{each}/*.py"))
    for pattern in ("__init__.py", "answers.py", *own):
        for source in sorted(_FUNCTIONS.glob(pattern)):
            copied = folder / source.relative_to(_FUNCTIONS.parent)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copied)
