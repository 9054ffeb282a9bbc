"""Versions of Slipway beside the installed one: each has an environment of its own.

The environments lie below `.slipway/versions` of the project, and stay for the next question. The
user's own environment never changes.
"""

import hashlib
import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import slipway
from slipway.codes.code import Code
from slipway.errors import UserError
from slipway.full_disk import no_room_problem

VERSIONS_FOLDER: Final = ".slipway/versions"
_VERSION: Final = re.compile(r"\d[\w.+!-]*", re.ASCII)
# Before `slipway.cdk`, a project was a clone. These names in it were Slipway's.
_CODE_OF_CLONE: Final = ("app.py", "containers", "embedded_aws", "slipway", "stacks")
_LAST_LINES: Final = 6
_PIP_INSTALL: Final = "-m pip install --quiet --no-compile --disable-pip-version-check"


@dataclass(frozen=True)
class Version:
    """A version of Slipway that can be run; the folder is what Python imports it from."""

    name: str
    python: Path
    folder: Path

    @contextmanager
    def project(self, root: Path) -> Iterator[Path]:
        """Gives the folder with the app.py that this version runs for a project."""
        if any((self.folder / "slipway").glob("cdk*")):
            yield root
            return
        if not (self.folder / "app.py").is_file():
            raise _refused(
                f"slipway {self.name} is from before `slipway.cdk`, and is no checkout",
                "Name the folder of a checkout, with its app.py.",
            )
        with tempfile.TemporaryDirectory(prefix="slipway-clone-") as folder:
            # The project's files, with the version's code in place of the project's.
            own = [each for each in root.iterdir() if each.name not in _CODE_OF_CLONE]
            links = {each.name: each for each in (*self.folder.iterdir(), *own)}
            for name, target in links.items():
                Path(folder, name).symlink_to(target)
            yield Path(folder)


def installed() -> Version:
    folder = Path(slipway.__file__).parents[1]
    return Version(f"{slipway.__version__} (installed)", Path(sys.executable), folder)


def version_of(root: Path, text: str) -> Version:
    """Returns a version, in an environment that is made if it is not there yet.

    The text is a version of the package index, the path or URL of a wheel, or a checkout's path.
    """
    path, digest = Path(text).expanduser().resolve(), ""
    if path.is_dir():
        needed = [path / "slipway" / "__init__.py", path / "pyproject.toml"]
        if not all(each.is_file() for each in needed):
            raise _refused(f"{text} is no checkout of Slipway", "Name the folder with `slipway/`.")
        content = tomllib.loads(needed[1].read_text("utf-8"))["project"]
        environment = _environment(root, text, content["dependencies"])
        return Version(f"{content['version']} ({text})", environment / "bin" / "python", path)
    if path.suffix == ".whl" and path.is_file():
        # Another build of one version is another environment.
        wanted, digest = str(path), hashlib.sha256(path.read_bytes()).hexdigest()
    elif _VERSION.fullmatch(text):
        wanted = f"slipway=={text}"
    elif "://" in text and text.endswith(".whl"):
        wanted = f"slipway @ {text}"
    else:
        raise _refused(
            f"{text!r} is no version, no wheel and no checkout",
            "Write a version such as 0.2.0, or the path of a wheel or of a checkout.",
        )
    environment = _environment(root, text, [wanted], digest)
    folder = next(environment.glob("lib/python*/site-packages"))
    if not (folder / "slipway" / "planning").is_dir():
        shutil.rmtree(environment)
        raise _refused(
            f"the package `slipway` of {text} is other software of this name",
            "Set the package index that has yours, or name the path of a wheel.",
        )
    known = importlib.metadata.distributions(name="slipway", path=[str(folder)])
    return Version(next(iter(known)).version, environment / "bin" / "python", folder)


def _environment(root: Path, text: str, wanted: Sequence[str], digest: str = "") -> Path:
    key = hashlib.sha256("\n".join([sys.version, digest, *wanted]).encode()).hexdigest()[:16]
    environment = root / VERSIONS_FOLDER / key
    if environment.is_dir():
        return environment
    try:
        environment.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=environment.parent) as folder:
            made = Path(folder, "environment")
            for command in _commands(made, wanted):
                # In the project, so that its pyproject.toml may name the index.
                done = subprocess.run(command, cwd=root, capture_output=True, text=True)  # noqa: S603
                if done.returncode:
                    told = (done.stderr or done.stdout).strip().splitlines()[-_LAST_LINES:]
                    raise _refused(
                        "\n".join([f"slipway {text} cannot be installed:", *told]),
                        "Name a version that your index has, or the path of a wheel or a checkout.",
                    )
            # A stopped installation leaves nothing that looks whole.
            made.rename(environment)
    except OSError as error:
        if environment.is_dir():
            return environment  # another command has made it meanwhile
        raise no_room_problem(error, str(environment)) or _refused(
            f"{environment} cannot be written: {error.strerror}", "Allow writing there."
        ) from None
    return environment


def _commands(environment: Path, wanted: Sequence[str]) -> Iterator[list[str]]:
    # A build of other software with this name would run its code.
    options = ["--only-binary", "slipway", *wanted]
    python = str(environment / "bin" / "python")
    uv = shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None and importlib.util.find_spec("pip") is None:
        uv = shutil.which("uv")
    if uv is None:
        yield [sys.executable, "-m", "venv", str(environment)]
        yield [python, *_PIP_INSTALL.split(), *options]
    else:
        yield [uv, "venv", "--quiet", "--python", sys.executable, str(environment)]
        yield [uv, "pip", "install", "--quiet", "--python", python, *options]


def _refused(message: str, remedy: str) -> UserError:
    return UserError.of(Code.NO_VERSION, message, remedy)
