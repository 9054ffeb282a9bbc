"""The packages that an image adds to its base, as the image's own metadata tell them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from license_expression import ExpressionError, get_spdx_licensing
from packaging.utils import canonicalize_name

from slipway.embedded_aws.containers.engine import Engine
from tools.installs import InstallError

_LICENCES: Final = Path(__file__).with_name("licences.json")
_PYTHON: Final = "/opt/slipway/venv/bin/python3"
# Prints the packages of the image's own environment, which may see packages of the base too. Prints
# Python as well, unless it is the base's.
_LIST: Final = """
import importlib.metadata, json, pathlib, sys, sysconfig
found = [
    {
        "name": each.metadata["Name"],
        "version": each.metadata["Version"],
        "expression": each.metadata.get("License-Expression"),
        "names": [
            name
            for name in [
                each.metadata.get("License"), *(each.metadata.get_all("Classifier") or [])
            ]
            if name and (name.startswith("License ::") or " :: " not in name)
        ],
    }
    for each in importlib.metadata.distributions(path=[sysconfig.get_path("purelib")])
]
if pathlib.Path(sys.base_prefix).is_relative_to("/opt/slipway"):
    version = ".".join(map(str, sys.version_info[:3]))
    found.append({"name": "cpython", "version": version, "expression": "PSF-2.0", "names": []})
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Package:
    """A package in an image: Python itself, if it is not from PyPI, and its SPDX expression."""

    name: str
    version: str
    licence: str
    is_from_pypi: bool


def packages_of(engine: Engine, image: str) -> list[Package]:
    """Returns the packages of an image, by name; none for an image that only adds files."""
    shell = f'[ ! -e {_PYTHON} ] || exec {_PYTHON} -I -c "$0"'
    options = ("--rm", "--network=none", "--read-only", "--entrypoint=sh")
    told = engine.answer("run", *options, image, "-c", shell, _LIST)
    return read_packages(json.loads(told) if told else [])


def read_packages(found: Iterable[Mapping[str, Any]]) -> list[Package]:
    """Returns packages with their licences, by name; raises `InstallError` for refused ones."""
    known = json.loads(_LICENCES.read_text("utf-8"))
    packages, problems = [], []
    for each in found:
        name, version = each["name"], each["version"]
        licence = _licence(canonicalize_name(name), each["expression"], each["names"], known)
        if licence is None:
            told = " | ".join(each["names"]) or "nothing"
            problems.append(f"{name} {version}: its metadata say {told}")
        elif refused := _refused(licence, known["allowed"]):
            problems.append(f"{name} {version}: {', '.join(refused)} is not allowed")
        else:
            packages.append(Package(name, version, licence, name != "cpython"))
    if problems:
        listed = "\n".join(sorted(problems))
        raise InstallError(
            f"These licences are not in tools/images/licences.json:\n{listed}\n"
            "Read the licence of each package, and add it there if Slipway's images may have it."
        )
    return sorted(packages, key=lambda package: package.name.lower())


def _licence(
    name: str, expression: str | None, names: Sequence[str], known: Mapping[str, Any]
) -> str | None:
    if (reviewed := known["packages"].get(name)) is not None:
        return str(reviewed)
    if expression:
        return expression
    for other in names:
        if other in known["names"]:
            return str(known["names"][other])
        if _is_spdx(other):
            return other
    return None


def _is_spdx(text: str) -> bool:
    try:
        get_spdx_licensing().parse(text, validate=True)
    except ExpressionError:
        return False
    return True


def _refused(licence: str, allowed: Sequence[str]) -> list[str]:
    try:
        keys = get_spdx_licensing().parse(licence).objects
    except ExpressionError:
        return [licence]
    return [key for key in keys if key not in allowed]
