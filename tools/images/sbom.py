"""The software bill of materials of an image: the packages that it adds to its base.

The image's own metadata tell them, and their licences.
"""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from cyclonedx.model import Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from license_expression import ExpressionError, get_spdx_licensing
from packageurl import PackageURL
from packaging.utils import canonicalize_name

from slipway import __version__
from slipway.embedded_aws.containers.engine import Engine
from tools.images.build import Built
from tools.installs import InstallError

_OWN_LICENCE: Final = "Apache-2.0"
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


def write_sbom(engine: Engine, built: Built, directory: Path) -> None:
    """Writes `NAME.cdx.json` and `NAME.licences.txt`; raises `InstallError` for a licence.

    They list the parts that the image adds to its base: Slipway's program, its Python packages, and
    Python where it is not the base's. No Dockerfile of Slipway's adds a package of the base's
    system. The base has a bill of its own publisher, and is named.
    """
    packages = packages_of(engine, built.image.tag)
    directory.mkdir(parents=True, exist_ok=True)
    name = built.image.name
    (directory / f"{name}.cdx.json").write_text(_document(engine, built, packages), "utf-8")
    lines = [f"{each.name} {each.version}: {each.licence}\n" for each in packages]
    own = f"slipway {__version__}: {_OWN_LICENCE}\n"
    (directory / f"{name}.licences.txt").write_text(own + "".join(lines), "utf-8")


def _document(engine: Engine, built: Built, packages: list[Package]) -> str:
    form = "[{{json .Id}}, {{json .Created}}]"
    identity, created = json.loads(
        engine.answer("image", "inspect", "--format", form, built.image.tag)
    )
    image = Component(
        name=f"slipway/{built.image.family}",
        version=f"{built.image.base_tag}-{built.sources}",
        type=ComponentType.CONTAINER,
        bom_ref="image",
        licenses=[LicenseExpression(_OWN_LICENCE)],
        properties=[Property(name="slipway:base", value=built.base)],
    )
    program = Component(
        name="slipway",
        version=__version__,
        type=ComponentType.APPLICATION,
        bom_ref="slipway",
        licenses=[LicenseExpression(_OWN_LICENCE)],
    )
    # The same image has the same document.
    bom = Bom(
        components=[program, *map(_component, packages)],
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, identity),
    )
    bom.metadata.component = image
    # Docker writes nine digits of a second, of which Python reads six.
    bom.metadata.timestamp = datetime.fromisoformat(created[:19] + "+00:00")
    bom.register_dependency(image, bom.components)
    return make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2)


def _component(package: Package) -> Component:
    kind = "pypi" if package.is_from_pypi else "generic"
    return Component(
        name=package.name,
        version=package.version,
        type=ComponentType.LIBRARY if package.is_from_pypi else ComponentType.PLATFORM,
        bom_ref=f"{package.name}-{package.version}",
        licenses=[LicenseExpression(package.licence)],
        purl=PackageURL(kind, None, package.name, package.version),
    )
