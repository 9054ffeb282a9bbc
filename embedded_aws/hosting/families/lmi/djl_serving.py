"""Becomes the user's own DJL Serving, started as AWS's images of `djl-inference` start it.

This is a program of its own, `python -I djl_serving.py`, that ends in an exec, so that SIGTERM
reaches the server. It needs SAGEMAKER_BIND_TO_PORT, SM_MODEL_DIR and HOME; the server writes its
files below HOME. The server comes from DJL_SERVING_HOME, from `make djl-serving`, or from the
`djl-serving` on the PATH. If there are several, the server of the image's version is used. Nothing
is downloaded.

djl_images.json beside this file has the variables that the images set.

It uses only the standard library and imports nothing of this package, because the PYTHONPATH may be
the model's.
"""

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

COMMAND: Final = (sys.executable, "-I", str(Path(__file__).resolve()))
"""Program and arguments that stand for the image."""

_IMAGES: Final[Any] = json.loads(Path(__file__).with_name("djl_images.json").read_text())
VERSION: Final = "DJL_SERVING_VERSION"
"""Variable with the version that the image's tag names."""

# AWS's tags begin with the server's version and the engine; so do Slipway's for images on AWS's.
_TAG: Final = re.compile(r"(?P<version>\d+\.\d+\.\d+)(?:-(?P<engine>[a-z]+).*)?")
_DOWNLOAD: Final = "https://publish.djl.ai/djl-serving/serving-0.36.0.tar"
_AGAIN: Final = "Then start the embedded AWS again."
_NUMBERS: Final = re.compile(r"\d+(\.\d+)*")
# Longest path of a UNIX socket without the file's name: 104 bytes with the final zero on macOS, 108
# on Linux. The longest file name is djl_sock.19000 followed by the number of a process.
_LONGEST_SOCKET_DIRECTORY_BYTES: Final = 80


class NotInstalledError(Exception):
    """DJL Serving or Java is not installed; the message says what to install."""


def image_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that the images set, adapted to this machine's server.

    SLIPWAY_DJL_PYTHON in `environ`, the embedded AWS's own environment, is the interpreter of the
    handlers; the default is the embedded AWS's own.
    """
    homes = os.pathsep.join(map(str, server_homes(environ)))
    where = {"DJL_SERVING_HOME": homes, "JAVA_HOME": environ.get("JAVA_HOME")}
    return {
        **_IMAGES["environment"],
        "PYTHON_EXECUTABLE": environ.get("SLIPWAY_DJL_PYTHON") or sys.executable,
        # On an EC2 instance the server would report its engine to DJL.
        "OPT_OUT_TRACKING": "true",
        **{name: value for name, value in where.items() if value},
    }


def tag_environment(tag: str) -> dict[str, str]:
    """The server chooses its handler by SERVING_FEATURES if a package names none."""
    match = _TAG.fullmatch(tag)
    if match is None:
        return {}
    told = {VERSION: match["version"]}
    for since, features in _IMAGES["features"].get(match["engine"], {}).items():
        if _numbers(match["version"]) >= _numbers(since):
            return {**told, "SERVING_FEATURES": features}
    return told


def servers_directory(environ: Mapping[str, str]) -> Path | None:
    """Returns the directory of the servers that `make djl-serving` built; None without a home."""
    cache = environ.get("XDG_CACHE_HOME")
    if not cache and environ.get("HOME"):
        cache = str(Path(environ["HOME"], ".cache"))
    return Path(cache, "slipway", "djl-serving") if cache else None


def is_home(home: Path) -> bool:
    return shutil.which(home / "bin" / "serving") is not None


def server_homes(environ: Mapping[str, str]) -> list[Path]:
    """Returns the directories of this machine's servers.

    DJL_SERVING_HOME names them, separated by colons. Without it, the servers of `make djl-serving`
    are returned, the newest first.
    """
    given = environ.get("DJL_SERVING_HOME")
    if given:
        return [Path(home) for home in given.split(os.pathsep) if home]
    directory = servers_directory(environ)
    if directory is None or not directory.is_dir():
        return []
    built = [
        home for home in directory.iterdir() if _NUMBERS.fullmatch(home.name) and is_home(home)
    ]
    return sorted(built, key=lambda home: _numbers(home.name), reverse=True)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def version_of(home: Path) -> str | None:
    """Returns a server's version from the name of its jar; None if there is not exactly one jar."""
    jars = list((home / "lib").glob("serving-*.jar"))
    return jars[0].stem.removeprefix("serving-") if len(jars) == 1 else None


def find_server(environ: Mapping[str, str]) -> Path:
    """Returns the program that starts DJL Serving; raises `NotInstalledError` without a server.

    Of several servers, the one with the version in the variable VERSION is taken, or else the
    first.
    """
    homes = server_homes(environ)
    if homes:
        wanted = environ.get(VERSION)
        home = next((home for home in homes if wanted and version_of(home) == wanted), homes[0])
        if not is_home(home):
            raise NotInstalledError(
                f"DJL_SERVING_HOME is {home}, which has no program bin/serving. Set it to the "
                f"absolute path of what {_DOWNLOAD} is extracted to. {_AGAIN}"
            )
        return home / "bin" / "serving"
    found = shutil.which("djl-serving", path=environ.get("PATH", os.defpath))
    if found is None:
        raise NotInstalledError(
            "DJL Serving is not installed. Run `make djl-serving` in Slipway's checkout to build "
            f"it, or extract {_DOWNLOAD} and set DJL_SERVING_HOME to the absolute path of its "
            "directory, or put `djl-serving` on the PATH (macOS: brew install djl-serving). "
            f"{_AGAIN}"
        )
    return Path(found)


def find_java(environ: Mapping[str, str]) -> Path:
    """Returns the Java that the server's start script uses, or raises `NotInstalledError`."""
    home = environ.get("JAVA_HOME")
    if home:
        java = Path(home, "bin", "java")
        if shutil.which(java) is None:
            raise NotInstalledError(
                f"JAVA_HOME is {home}, which has no program bin/java. Set it to a Java 17, or "
                f"unset it to take the `java` on the PATH. {_AGAIN}"
            )
        return java
    found = shutil.which("java", path=environ.get("PATH", os.defpath))
    if found is None:
        raise NotInstalledError(
            "DJL Serving needs Java 17, and there is no `java` on the PATH. Install it (Debian "
            "and Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17) "
            f"or set JAVA_HOME. {_AGAIN}"
        )
    return Path(found)


def server_environment(environ: Mapping[str, str], server: Path, directory: Path) -> dict[str, str]:
    """Returns the server's environment, with the model's own variables first, as in the image."""
    temporary = _temporary_directory(directory)
    given = environ.get("JDK_JAVA_OPTIONS", "")
    logging = server.resolve().parents[1] / "conf" / "log4j2-plain.xml"
    return {
        # The start script sets this on SageMaker; older versions have no such file.
        **(
            {"DEFAULT_JVM_OPTS": f"-Dlog4j.configurationFile={logging}"} if logging.exists() else {}
        ),
        # Java takes the user's home directory, whatever HOME says.
        "DJL_CACHE_DIR": str(directory / "cache"),
        # Directory of the logs; the default is the server's installation.
        "MODEL_SERVER_HOME": str(directory),
        **environ,
        # A server talks to its workers over sockets in this directory. Their names are the same for
        # every server, and a server kills the workers of an earlier server by these files. In a
        # container it is alone. JAVA_OPTS is not used for this, because a model may set it.
        "JDK_JAVA_OPTIONS": f"{given} '-Djava.io.tmpdir={temporary}'".lstrip(),
    }


def _temporary_directory(directory: Path) -> Path:
    temporary = directory / "tmp"
    too_long = len(os.fsencode(temporary)) > _LONGEST_SOCKET_DIRECTORY_BYTES
    # A quoted option cannot have a quote in it either.
    if too_long or "'" in str(temporary):
        # The caller removes `directory`; this one is left for the system to clear.
        return Path(tempfile.mkdtemp(prefix="djl-"))
    temporary.mkdir(exist_ok=True)
    return temporary


def main() -> int:
    """Becomes the server; returns the exit status if that fails."""
    directory = Path(os.environ["HOME"], "djl-serving")
    directory.mkdir(exist_ok=True)
    try:
        server = find_server(os.environ)
        find_java(os.environ)
    except NotInstalledError as error:
        print(error, file=sys.stderr)
        return 1
    address = f"http://127.0.0.1:{os.environ['SAGEMAKER_BIND_TO_PORT']}"
    config = directory / "config.properties"
    # As in the image, except the address and the model store: a path would need the escapes of
    # Java's format.
    config.write_text(
        f"inference_address={address}\nmanagement_address={address}\nload_models=ALL\n"
    )
    arguments = [str(server), "-f", str(config), "-s", os.environ["SM_MODEL_DIR"]]
    environment = server_environment(os.environ, server, directory)
    try:
        os.execve(server, arguments, environment)  # noqa: S606  # the user's own server
    except OSError as error:
        print(f"cannot run {server}: {error.strerror}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
