"""Reads the settings of an LMI endpoint out of the package in its model data."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from slipway.deployed.described import Package
from slipway.importing.call import Call
from slipway.importing.lmi.source import LmiSource, read_directory
from slipway.importing.own_images import own_image


def source_of_package(call: Call, package: Package) -> LmiSource:
    """Returns the settings of a package and the variables beside it.

    Raises:
        UserError: Java could not read serving.properties.
    """
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for name, content in package.files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        source = read_directory(root, (call.model_data or "").rstrip("/"))
    return replace(
        source,
        origin=call.origin,
        repeated=[*source.repeated, *call.left_out],
        environment=call.environment,
        directory=None,
        is_built=own_image(call.image_uri or "") is not None,
    )
