"""Slipway as its users install it, from a wheel. `python -m tools.installed` tells its size.

Packages come from uv's cache, or else from where `make setup` has them from.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.install import pip_settings, uv_variables

ROOT = Path(__file__).parents[1]
# What the packages of the CDK install.
CDK = ("aws_cdk", "constructs", "jsii")
_UV = Path(sys.executable).with_name("uv")


@dataclass(frozen=True)
class Installed:
    """A new virtual environment.

    `seconds` is how long the packages took, and `sizes_bytes` has the entries of site-packages.
    """

    directory: Path
    seconds: float
    sizes_bytes: Mapping[str, int]

    @property
    def programs(self) -> Path:
        return self.directory / "bin"

    @property
    def cdk_bytes(self) -> int:
        return sum(self.sizes_bytes[name] for name in CDK)


def build_wheel(directory: Path, sources: Path = ROOT) -> Path:
    _uv("build", "--wheel", "--out-dir", str(directory), str(sources))
    return next(directory.glob("*.whl"))


def install(requirements: Path | str, directory: Path, inside: Path | None = None) -> Installed:
    """Installs a wheel, or a list of requirements inside a folder, into a new environment.

    The versions are those of requirements.txt.
    """
    _uv("venv", "--python", sys.executable, str(directory))
    python = directory / "bin" / "python"
    named = ["--requirement", requirements] if inside else [str(requirements)]
    started = time.monotonic()
    _uv(
        *("pip", "install", "--python", str(python), *named),
        *("--constraints", str(ROOT / "requirements.txt")),
        inside=inside,
    )
    seconds = time.monotonic() - started
    (packages,) = directory.glob("lib/python3*/site-packages")
    return Installed(directory, seconds, {each.name: _size(each) for each in packages.iterdir()})


def _uv(*arguments: str, inside: Path | None = None) -> None:
    environ = {**os.environ, **uv_variables(pip_settings(), os.environ)}
    command = [str(_UV), arguments[0], "--quiet", *arguments[1:]]
    subprocess.run(command, check=True, env=environ, cwd=inside)  # noqa: S603


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(each.lstat().st_size for each in files if not each.is_dir())


def report(plain: Installed, wheel: Path) -> str:
    whole = sum(plain.sizes_bytes.values())
    largest = sorted(plain.sizes_bytes.items(), key=lambda item: -item[1])[:6]
    return "\n".join(
        [
            f"wheel    {wheel.stat().st_size / 1e6:.1f} MB",
            f"install  {plain.seconds:.1f} s from uv's cache",
            f"size     {whole / 1e6:.0f} MB, of which the CDK {plain.cdk_bytes / 1e6:.0f} MB",
            *(f"         {size / 1e6:.0f} MB {name}" for name, size in largest),
        ]
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        made = build_wheel(Path(folder, "dist"))
        install(made, Path(folder, "warm"))  # what the cache lacks is fetched here
        print(report(install(made, Path(folder, "plain")), made))
