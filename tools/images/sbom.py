"""The software bill of materials of an image, as CycloneDX JSON."""

import json
import uuid
from datetime import datetime
from pathlib import Path
from typing import Final

from cyclonedx.model import Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

from slipway import __version__
from slipway.embedded_aws.containers.engine import Engine
from tools.images.build import Built
from tools.images.contents import Package, packages_of

_OWN_LICENCE: Final = "Apache-2.0"


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
