"""Installs lists of packages with uv, in seconds where pip takes minutes; `make setup` calls it.

It needs only the standard library, because it runs before anything is installed.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

# The version and the hashes of uv; the images that need it take the same list.
UV_LIST = Path(__file__).parent.parent / "containers" / "tensorrt" / "requirements-uv.txt"
# uv does not read pip's files and variables. On a machine that sets them, uv needs the same
# settings. Name in pip's settings -> variable of uv.
SETTINGS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
    "trusted-host": "UV_INSECURE_HOST",
}
_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def uv_variables(pip_settings: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that tell uv the settings of pip; those of the environment stay.

    The settings are lines of `pip config list`, such as `global.index-url='https://...'`.
    """
    found: dict[str, str] = {}
    sections = ("global.", "install.", ":env:.")  # the later setting wins, as in pip
    lines = [line for section in sections for line in pip_settings if line.startswith(section)]
    for line in lines:
        key, _, value = line.partition("=")
        variable = SETTINGS.get(key.rpartition(".")[2])
        if variable and variable not in environ:
            found[variable] = _in_one_line(str(ast.literal_eval(value)), variable)
    return found


def pip_settings() -> list[str]:
    done = subprocess.run(  # noqa: S603
        [*_PIP, "config", "list"], check=True, capture_output=True, text=True
    )
    return done.stdout.splitlines()


def _in_one_line(value: str, variable: str) -> str:
    # pip separates several values by white space; uv separates folders and files by commas.
    return (",", " ")[variable in ("UV_INDEX", "UV_INSECURE_HOST")].join(value.split())


def main(arguments: Sequence[str]) -> int:
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists():
        wanted = ("--quiet", "--require-hashes", "--requirement", str(UV_LIST))
        subprocess.run([*_PIP, "install", *wanted], check=True)  # noqa: S603
    environ = {**os.environ, **uv_variables(pip_settings(), os.environ)}
    command = [
        str(uv),
        "pip",
        "install",
        "--python",
        sys.executable,
        "--quiet",
        "--no-deps",
        *arguments,
    ]
    return subprocess.run(command, env=environ, check=False).returncode  # noqa: S603


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
