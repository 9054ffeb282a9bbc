"""`python -m tools.pictures [--check]`: writes docs/pictures, or says what is out of date there."""

import argparse
import sys

from tools.pictures import FOLDER, drawn, stale
from tools.pictures.kit.canvas import DrawingError


def main(arguments: list[str]) -> int:
    """Returns the exit code: 1 where a picture cannot be drawn, or with --check is out of date."""
    parser = argparse.ArgumentParser(prog="python -m tools.pictures", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with 1 if a file differs"
    )
    checks = parser.parse_args(arguments).check
    try:
        files = drawn()
    except DrawingError as error:
        print(error, file=sys.stderr)
        return 1
    changed = stale(files)
    if checks:
        for name in changed:
            print(f"docs/pictures/{name} is out of date; `make pictures` draws it", file=sys.stderr)
        return 1 if changed else 0
    FOLDER.mkdir(exist_ok=True)
    for name in changed:
        if name in files:
            (FOLDER / name).write_text(files[name], "utf-8")
            print(f"wrote docs/pictures/{name}")
        else:
            (FOLDER / name).unlink()
            print(f"removed docs/pictures/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
