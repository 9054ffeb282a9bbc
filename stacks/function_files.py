"""The files of a Lambda function's package."""

import shutil
from pathlib import Path

_FUNCTIONS = Path(__file__).with_name("functions")


def copy_function(module: str, folder: Path) -> None:
    """Copies what the function of a module imports into a folder, without the caches beside it."""
    name = module.partition(".")[0]
    for pattern in ("__init__.py", "answers.py", f"{name}.py", f"{name}/*.py"):
        for source in sorted(_FUNCTIONS.glob(pattern)):
            copied = folder / source.relative_to(_FUNCTIONS.parent)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copied)
