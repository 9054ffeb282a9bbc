"""Reads lists of packages, and their locks."""

import importlib.metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def lines(path: Path) -> list[str]:
    return [
        line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("#")
    ]


def locked(path: Path) -> dict[str, str]:
    return dict(line.split()[0].split("==") for line in lines(path) if "==" in line)


def applies(requirement: Requirement, python: str = "3.12") -> bool:
    """Whether a requirement is one of the images' Python, as its marker says."""
    markers = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": "x86_64",
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
        "os_name": "posix",
        "extra": "",
    }
    return requirement.marker is None or requirement.marker.evaluate(markers)


def needed(name: str, python: str = "3.12") -> set[str]:
    """Returns the packages that an installed package needs in an image."""
    requirements = map(Requirement, importlib.metadata.requires(name) or [])
    return {canonicalize_name(each.name) for each in requirements if applies(each, python)}
