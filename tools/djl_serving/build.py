"""Compiles one release of DJL Serving into a directory that starts it.

The releases' own build needs Gradle, and downloads of Gradle from a site of its own. Here `git`
fetches the sources of the one commit that releases.json pins. Maven fetches the libraries in the
versions that the release names (pom.xml.j2). compile.sh compiles the four parts that a container
with a Python handler uses. The engines and the model zoo of Java, its tokenizers, and the plugins
are left out.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from jinja2 import Template

from tools.installs import InstallError, UnavailableError

RELEASES: Final[Mapping[str, Mapping[str, str]]] = json.loads(
    Path(__file__).with_name("releases.json").read_text()
)
"""By version: the commit, and versions of libraries as the sources of that commit name them."""

SOURCE: Final = "https://github.com/deepjavalibrary/djl-serving"

_COPY_DEPENDENCIES: Final = (
    "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
)
_PROGRAMS: Final = {
    "git": "Debian and Ubuntu: apt-get install git",
    "mvn": "Debian and Ubuntu: apt-get install maven; macOS: brew install maven",
    "javac": "Debian and Ubuntu: apt-get install openjdk-17-jdk-headless; macOS: brew install "
    "openjdk@17",
    "jar": "it comes with javac",
}
_HERE: Final = Path(__file__).parent


# How long git may wait for the sources' address to answer, and how long it may then make no
# progress.
_ANSWER_SECONDS: Final = 15.0
_STILL: Final = ("-c", "http.lowSpeedLimit=1", "-c", "http.lowSpeedTime=20")
_ON_A_NETWORK: Final = re.compile("(https?|ssh|git)://")
# Git's messages for an address that answers, but has no such repository for this user.
_REFUSED: Final = re.compile(
    "returned error: 4[0-9][0-9]|repository .* not found|Authentication failed|could not read User"
)


def find_programs() -> None:
    """Raises `InstallError` with the names of all programs of the build that are missing."""
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    if missing:
        raise InstallError(
            "To build DJL Serving these programs must be on the PATH:\n"
            + "\n".join(f"  {name} ({_PROGRAMS[name]})" for name in missing)
        )


def build(version: str, directory: Path, source: str) -> None:
    """Builds a release of RELEASES, and prints each step that begins.

    The server is built in a folder beside `directory`, and moved when it is complete. `source` is
    the address or path of a git repository. Raises `UnavailableError` if it does not answer, and
    `InstallError` with the output of git, Maven or the compiler.
    """
    release = RELEASES[version]
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{version}-", dir=directory) as scratch:
        sources, made = Path(scratch, "sources"), Path(scratch, "server")
        _tell(version, "fetches the sources")
        _fetch(source, release["commit"], sources)
        _tell(version, "fetches the libraries")
        pom, libraries = Path(scratch, "pom.xml"), made / "lib"
        pom.write_text(Template((_HERE / "pom.xml.j2").read_text("utf-8")).render(release), "utf-8")
        _run(
            *("mvn", "--quiet", "--batch-mode", "--strict-checksums", "-Dstyle.color=never"),
            *("--file", str(pom), _COPY_DEPENDENCIES),
            *(f"-DoutputDirectory={libraries}", "-DincludeScope=runtime"),
        )
        _tell(version, "compiles")
        parts = ["wlm", *(["prometheus"] if "prometheus" in release else [])]
        folders = map(str, (sources, Path(scratch, "classes"), libraries))
        command = str(_HERE / "compile.sh")
        _run(command, version, *folders, *parts, "serving", "engines/python")
        shutil.copytree(sources / "serving" / "src" / "main" / "conf", made / "conf")
        (made / "plugins").mkdir()
        (made / "bin").mkdir()
        shutil.copy(_HERE / "start.sh", made / "bin" / "serving")
        (made / "bin" / "serving").chmod(0o755)
        made.rename(directory / version)


def _tell(version: str, step: str) -> None:
    print(f"DJL Serving {version}: {step}", flush=True)


def _fetch(source: str, commit: str, sources: Path) -> None:
    sources.mkdir()
    _run("git", "init", "--quiet", str(sources))
    git = ("git", "-C", str(sources), "-c", "advice.detachedHead=false")
    try:
        # An address that does not answer can hold up a fetch for minutes.
        _run("git", "ls-remote", "--quiet", source, "HEAD", seconds=_ANSWER_SECONDS)
        _run(*git, *_STILL, "fetch", "--quiet", "--depth", "1", source, commit)
    except InstallError as error:
        if _ON_A_NETWORK.match(source) and not _REFUSED.search(str(error)):
            raise UnavailableError(
                f"{error}\nThe sources cannot be reached from here. --source names a copy of the "
                f"repository; by default it is {SOURCE}"
            ) from None
        raise InstallError(f"{error}\nThe sources: --source, by default {SOURCE}") from None
    _run(*git, "checkout", "--quiet", commit)


def _run(*command: str, seconds: float | None = None) -> None:
    # Git's messages are matched, so they must be in English; it must not ask for a password.
    environment = {**os.environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
    shown = " ".join(command)
    try:
        finished = subprocess.run(  # noqa: S603  # fixed arguments
            command, capture_output=True, text=True, check=False, env=environment, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        raise InstallError(f"{shown} did not end within {seconds:g} s") from None
    if finished.returncode != 0:
        said = (finished.stderr or finished.stdout).strip()
        raise InstallError(f"{shown} ended with status {finished.returncode}:\n{said}")
