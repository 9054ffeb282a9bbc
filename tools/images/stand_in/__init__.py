"""Makes a stand-in for a base image that cannot be pulled.

No Dockerfile of Slipway's knows of it. Its name, `slipway-stand-in/...`, tells it from the base.
The rest of the name is the base's, because Dockerfiles read the repository and the tag.
"""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from slipway.embedded_aws.containers.engine import Engine
from slipway.embedded_aws.hosting.families.triton.triton_server import servers_directory
from tools.images.catalogue import Image, Version
from tools.images.engine import install
from tools.installs import UnavailableError, cache_directory

_HERE: Final = Path(__file__).parent
_RELEASE: Final = "bookworm"
_LABEL: Final = "slipway.stand-in"
# Libraries that a CPython and the wheels of a server's packages are linked with.
_PACKAGES: Final = (_HERE / "packages.txt").read_text("utf-8").split()
_STAGES: Final[Mapping[str, str]] = {
    "tensorrt": "python",
    "lmi": "python",
    "neuron": "packages",
    "triton": "triton",
}


def make(
    engine: Engine,
    image: Image,
    secrets: tuple[str, ...],
    tell: Callable[[str], None],
    environ: Mapping[str, str] = os.environ,
) -> str:
    """Makes the stand-in of an image's base, unless the engine has it; returns its name.

    `secrets` are options of `docker build` with the certificate authorities of a mirror. Raises
    `UnavailableError` if this machine lacks the Python, Debian's packages or the server.
    """
    name = f"slipway-stand-in/{image.base.partition('@')[0].partition('/')[2]}"
    recipe = _recipe()
    if engine.label(name, _LABEL) == recipe:
        return name
    folder = cache_directory(environ) / "images" / "bases"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix="context-") as temporary:
        context = Path(temporary)
        for file in ("Dockerfile", "requirements.txt"):
            shutil.copy(_HERE / file, context)
        os.link(_debian(folder), context / "debian.tar")
        _lay_python(folder, image.python, context / "python", environ)
        (context / "managed").mkdir()
        if image.managed_python is not None:
            _lay_managed(folder, image.managed_python, context / "managed", environ)
        if image.family == "triton":
            _lay_triton(image.python, context / "tritonserver", environ)
        stage = _STAGES[image.family]
        label = f"{_LABEL}={recipe}"
        engine.build(
            context, "--target", stage, "--label", label, "--tag", name, *secrets, tell=tell
        )
    return name


def _recipe() -> str:
    """Returns the fingerprint of what makes stand-ins; with another one they are made again."""
    files = sorted(path for path in _HERE.iterdir() if path.is_file())
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def _debian(folder: Path) -> Path:
    chosen = hashlib.sha256(" ".join(_PACKAGES).encode()).hexdigest()[:12]
    archive = folder / f"{_RELEASE}-{chosen}.tar"
    if not archive.exists():
        if shutil.which("mmdebstrap") is None:
            install("mmdebstrap", "mmdebstrap")
        unfinished = folder / f"{_RELEASE}-{chosen}.{os.getpid()}.tar"
        included = f"--include={','.join(_PACKAGES)}"
        done = subprocess.run(  # noqa: S603
            ["mmdebstrap", "--variant=minbase", included, _RELEASE, str(unfinished)],  # noqa: S607
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            unfinished.unlink(missing_ok=True)
            last = "\n".join(done.stderr.strip().splitlines()[-10:])
            raise UnavailableError(f"Debian's packages cannot be had: mmdebstrap failed:\n{last}")
        unfinished.rename(archive)
    return archive


_TELL: Final = "import sys; print(*sys.version_info[:2], sep='.'); print(sys.base_prefix)"


def find_python(version: Version, environ: Mapping[str, str] = os.environ) -> Path:
    """Returns the directory of an installed Python, which has `bin` and `lib`.

    It is the first of the version, such as (3, 12), on the PATH, or pyenv's newest. Raises
    `UnavailableError` if there is none, or the only one is spread over /usr.
    """
    numbers = f"{version[0]}.{version[1]}"
    root = environ.get("PYENV_ROOT") or str(Path(environ.get("HOME", "/"), ".pyenv"))
    for path in (environ.get("PATH", ""), f"{root}/shims"):
        program = shutil.which(f"python{numbers}", path=path)
        if program is None:
            continue
        done = subprocess.run(  # noqa: S603
            [program, "-I", "-c", _TELL],
            env={**environ, "PYENV_VERSION": numbers},
            capture_output=True,
            text=True,
            check=False,
        )
        found, _, prefix = done.stdout.strip().partition("\n")
        # Debian's own Python is not one folder.
        if found == numbers and prefix != "/usr":
            return Path(prefix)
    raise UnavailableError(
        f"This machine has no Python {numbers} in a folder of its own: `pyenv install` makes one"
    )


def _lay_python(
    folder: Path, version: Version, destination: Path, environ: Mapping[str, str]
) -> None:
    """Lays a Python into a context; the same bytes each time, for the engine's cache."""
    name = f"python{version[0]}.{version[1]}"
    kept = folder / name
    if not kept.exists():
        if shutil.which("patchelf") is None:
            install("patchelf", "patchelf")
        prefix = find_python(version, environ)
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            made = Path(temporary, "python")
            command = (str(_HERE / "lay_python.sh"), str(prefix), name, str(made))
            subprocess.run(command, check=True, capture_output=True)  # noqa: S603
            made.rename(kept)
    shutil.copytree(kept, destination, symlinks=True, copy_function=os.link)


def _lay_managed(folder: Path, version: str, destination: Path, environ: Mapping[str, str]) -> None:
    """Lays an archive of Python and the list in which uv finds it under the exact version.

    The Python in it may have another patch version. uv does not check that.
    """
    major, minor, patch = map(int, version.split("."))
    archive = folder / f"managed{major}.{minor}.tar.gz"
    if not archive.exists():
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            _lay_python(folder, (major, minor), Path(temporary, "python"), environ)
            made = Path(temporary, "managed.tar.gz")
            # As uv expects its downloads: everything is below `python/`.
            with tarfile.open(made, "w:gz", compresslevel=1) as packed:
                packed.add(Path(temporary, "python"), "python")
            made.rename(archive)
    os.link(archive, destination / archive.name)
    download = {
        "name": "cpython",
        "arch": {"family": platform.machine(), "variant": None},
        "os": "linux",
        "libc": "gnu",
        "major": major,
        "minor": minor,
        "patch": patch,
        "prerelease": "",
        "url": f"file:///opt/stand-in/{archive.name}",
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        "variant": None,
        "build": None,
    }
    key = f"cpython-{version}-linux-{platform.machine()}-gnu"
    (destination / "downloads.json").write_text(json.dumps({key: download}), "utf-8")


def _lay_triton(version: Version, destination: Path, environ: Mapping[str, str]) -> None:
    """Lays the Triton that `make triton` installed, with its back end for a Python."""
    home = servers_directory(environ)
    found = sorted((home or Path()).glob("lib/python3.*/site-packages/pytriton/tritonserver"))
    if home is None or not found:
        raise UnavailableError("There is no Triton here: `make triton` installs it")
    server = found[0]
    stubs = server / "python_backend_stubs" / f"{version[0]}.{version[1]}"
    shutil.copytree(server / "bin", destination / "program")
    shutil.copytree(server / "backends", destination / "backends")
    shutil.copytree(server.parents[1] / "nvidia_pytriton.libs", destination / "libraries")
    shutil.copy(stubs / "triton_python_backend_stub", destination / "backends" / "python")
    (destination / "bin").mkdir()
    shutil.copy(_HERE / "tritonserver.sh", destination / "bin" / "tritonserver")
