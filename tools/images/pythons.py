"""Pythons of this machine that a stand-in base can have, as folders that run anywhere."""

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tools.installs import UnavailableError

Version = tuple[int, int]

_TELL: Final = "import sys; print(*sys.version_info[:3]); print(sys.base_prefix)"
# Neither a server nor an installer needs these.
_LEFT_OUT: Final = (
    "test",
    "idlelib",
    "lib2to3",
    "turtledemo",
    "site-packages",
    "__pycache__",
    "config-*",
    "*.a",
)


def find_python(version: Version, environ: Mapping[str, str] = os.environ) -> Path:
    """Returns the directory of an installed Python, which has `bin` and `lib`.

    It is the first of the version, such as (3, 12), on the PATH, or one of pyenv's. Raises
    `UnavailableError` if there is none, or the only one is spread over /usr.
    """
    for program in _programs(version, environ):
        done = subprocess.run(  # noqa: S603
            [program, "-I", "-c", _TELL], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            continue
        numbers, prefix = done.stdout.splitlines()
        is_of_version = tuple(map(int, numbers.split()[:2])) == version
        # Debian's own Python is not one folder.
        if is_of_version and prefix != "/usr":
            return Path(prefix)
    raise UnavailableError(
        f"This machine has no Python {version[0]}.{version[1]} in a folder of its own: "
        "`pyenv install` makes one"
    )


def copy_python(prefix: Path, version: Version, destination: Path) -> None:
    """Copies a Python so that it runs from any folder, into a new one with `bin` and `lib`."""
    name = f"python{version[0]}.{version[1]}"
    (destination / "bin").mkdir(parents=True)
    shutil.copytree(
        prefix / "lib" / name,
        destination / "lib" / name,
        symlinks=True,
        ignore=shutil.ignore_patterns(*_LEFT_OUT),
    )
    (destination / "lib" / name / "site-packages").mkdir()
    for library in (prefix / "lib").glob(f"lib{name}.so*"):
        shutil.copy(library, destination / "lib", follow_symlinks=False)
    shutil.copy(prefix / "bin" / name, destination / "bin")
    for link in ("python3", "python"):
        (destination / "bin" / link).symlink_to(name)
    # Else the program looks for its library where it was built.
    subprocess.run(  # noqa: S603
        ["patchelf", "--set-rpath", "$ORIGIN/../lib", str(destination / "bin" / name)],  # noqa: S607
        check=True,
        capture_output=True,
    )


def pack_for_uv(python: Path, archive: Path) -> None:
    """Packs a folder of `copy_python` as uv expects its downloads: everything below `python/`."""
    with tarfile.open(archive, "w:gz", compresslevel=1) as packed:
        packed.add(python, "python")


def _programs(version: Version, environ: Mapping[str, str]) -> Iterator[str]:
    name = f"python{version[0]}.{version[1]}"
    if (found := shutil.which(name, path=environ.get("PATH"))) is not None:
        yield found
    root = environ.get("PYENV_ROOT") or str(Path(environ.get("HOME", "/"), ".pyenv"))
    pattern = f"versions/{version[0]}.{version[1]}.*/bin/{name}"
    yield from map(str, _newest_first(list(Path(root).glob(pattern))))


def _newest_first(programs: Sequence[Path]) -> list[Path]:
    def patch(program: Path) -> tuple[int, str]:
        number = program.parents[1].name.rpartition(".")[2]
        return (int(number) if number.isdecimal() else -1, program.as_posix())

    return sorted(programs, key=patch, reverse=True)
