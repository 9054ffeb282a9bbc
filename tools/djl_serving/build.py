"""Compiles one release of DJL Serving into a directory that starts it.

The releases' own build needs Gradle, and downloads of Gradle from a site of its own. Here `git`
fetches the sources of the one commit that releases.json pins. Maven fetches the libraries in the
versions that the release names. `javac` compiles the four parts that a container with a Python
handler uses. The engines and the model zoo of Java, its tokenizers, and the plugins are left out.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from tools.installs import InstallError, UnavailableError

RELEASES: Final[Mapping[str, Mapping[str, str]]] = json.loads(
    Path(__file__).with_name("releases.json").read_text()
)
"""By version: the commit, and versions of libraries as the sources of that commit name them."""

SOURCE: Final = "https://github.com/deepjavalibrary/djl-serving"

_COPY_DEPENDENCIES: Final = (
    "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
)
_PLATFORMS: Final = {
    "netty-transport-native-epoll": ("linux-aarch_64", "linux-x86_64"),
    "netty-transport-native-kqueue": ("osx-aarch_64", "osx-x86_64"),
}
_PROGRAMS: Final = {
    "git": "Debian and Ubuntu: apt-get install git",
    "mvn": "Debian and Ubuntu: apt-get install maven; macOS: brew install maven",
    "javac": "Debian and Ubuntu: apt-get install openjdk-17-jdk-headless; macOS: brew install "
    "openjdk@17",
    "jar": "it comes with javac",
}
_START: Final = Path(__file__).with_name("start.sh")
# Files that the releases' own build leaves out of the worker's package.
_NOT_OF_THE_WORKER: Final = ("setup.py", "PyPiDescription.rst")


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
        _fetch_libraries(release, Path(scratch, "pom.xml"), made / "lib")
        _tell(version, "compiles")
        for part, name in _parts(release):
            _compile(sources / part, Path(scratch, "classes", name), made / "lib", name, version)
        shutil.copytree(sources / "serving" / "src" / "main" / "conf", made / "conf")
        (made / "plugins").mkdir()
        (made / "bin").mkdir()
        shutil.copy(_START, made / "bin" / "serving")
        (made / "bin" / "serving").chmod(0o755)
        made.rename(directory / version)


def _tell(version: str, step: str) -> None:
    print(f"DJL Serving {version}: {step}", flush=True)


def _parts(release: Mapping[str, str]) -> list[tuple[str, str]]:
    """Returns folders of the sources with their jars' names, in the order of dependencies."""
    prometheus = [("prometheus", "prometheus")] if "prometheus" in release else []
    return [("wlm", "wlm"), *prometheus, ("serving", "serving"), ("engines/python", "python")]


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


def _coordinates(release: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Returns group, name and version of the libraries at run time, some with a platform."""
    netty, log4j = release["netty"], release["log4j"]
    binding = "log4j-slf4j2-impl" if release["slf4j"].startswith("2.") else "log4j-slf4j-impl"
    natives = [
        ("io.netty", name, netty, platform)
        for name, platforms in _PLATFORMS.items()
        for platform in platforms
    ]
    found: list[tuple[str, ...]] = [
        ("ai.djl", "api", release["djl"]),
        ("org.slf4j", "slf4j-api", release["slf4j"]),
        ("io.netty", "netty-codec-http", netty),
        *natives,
        ("commons-cli", "commons-cli", release["commons_cli"]),
        ("org.apache.logging.log4j", binding, log4j),
        ("org.apache.logging.log4j", "log4j-core", log4j),
        ("com.lmax", "disruptor", release["disruptor"]),
    ]
    if "snakeyaml" in release:
        found.append(("org.yaml", "snakeyaml", release["snakeyaml"]))
    if "prometheus" in release:
        found += [
            ("io.prometheus", f"prometheus-metrics-{name}", release["prometheus"])
            for name in ("core", "exposition-formats")
        ]
    return found


def _fetch_libraries(release: Mapping[str, str], pom: Path, into: Path) -> None:
    project = ElementTree.Element("project")
    own = {"modelVersion": "4.0.0", "groupId": "slipway", "artifactId": "libraries", "version": "1"}
    for name, text in own.items():
        ElementTree.SubElement(project, name).text = text
    dependencies = ElementTree.SubElement(project, "dependencies")
    names = ("groupId", "artifactId", "version", "classifier")
    for coordinate in _coordinates(release):
        dependency = ElementTree.SubElement(dependencies, "dependency")
        for name, text in zip(names, coordinate, strict=False):
            ElementTree.SubElement(dependency, name).text = text
    ElementTree.ElementTree(project).write(pom)
    _run(
        *("mvn", "--quiet", "--batch-mode", "--strict-checksums", "-Dstyle.color=never"),
        *("--file", str(pom), _COPY_DEPENDENCIES),
        *(f"-DoutputDirectory={into}", "-DincludeScope=runtime"),
    )


def _compile(part: Path, classes: Path, libraries: Path, name: str, version: str) -> None:
    main = part / "src" / "main"
    files = sorted(str(path) for path in (main / "java").rglob("*.java"))
    _run(
        *("javac", "-nowarn", "-proc:none", "-encoding", "UTF-8"),
        *("-cp", str(libraries / "*"), "-d", str(classes), *files),
    )
    if (main / "resources").is_dir():
        shutil.copytree(main / "resources", classes, dirs_exist_ok=True)
    if name == "python":
        _add_worker(part / "setup", classes, version)
    entry = ("--main-class", "ai.djl.serving.ModelServer") if name == "serving" else ()
    jar = libraries / f"{name}-{version}.jar"
    _run("jar", "--create", "--file", str(jar), *entry, "-C", str(classes), ".")


def _add_worker(setup: Path, classes: Path, version: str) -> None:
    """Adds the Python part, which the server unpacks by the list of its files."""
    listed = []
    for path in sorted(setup.rglob("*")):
        inner = path.relative_to(setup)
        if not path.is_file() or inner.name in _NOT_OF_THE_WORKER or "tests" in inner.parts:
            continue
        (classes / inner).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, classes / inner)
        if inner.parts[0] == "djl_python":
            listed.append(inner.as_posix())
    with (classes / "djl_python" / "__init__.py").open("a") as package:
        package.write(f"\n__version__ = '{version}'\n")
    properties = classes / "native" / "lib" / "python.properties"
    properties.parent.mkdir(parents=True)
    libraries = ",".join(["djl_python_engine.py", *listed])
    properties.write_text(f"version={version}\nlibraries={libraries}\n")


def _run(*command: str, seconds: float | None = None) -> None:
    # Git's messages are matched, so they must be in English; it must not ask for a password.
    environment = {**os.environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
    try:
        finished = subprocess.run(  # noqa: S603  # fixed arguments
            command, capture_output=True, text=True, check=False, env=environment, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        raise InstallError(f"{_shown(command)} did not end within {seconds:g} s") from None
    if finished.returncode != 0:
        said = (finished.stderr or finished.stdout).strip()
        raise InstallError(f"{_shown(command)} ended with status {finished.returncode}:\n{said}")


def _shown(command: Sequence[str]) -> str:
    """Returns the command without its list of files."""
    return " ".join(part for part in command if not part.endswith(".java"))
