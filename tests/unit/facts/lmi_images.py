"""LMI images in the image table, and the options that their handlers read."""

import json
from importlib import resources

from slipway.facts import images
from slipway.facts.lmi.options import OptionFacts
from slipway.facts.lmi.versions import lmi_version

VERSIONS = list(
    json.loads(resources.files("slipway.facts.lmi").joinpath("lmi.json").read_text("utf-8"))[
        "versions"
    ]
)
NEWEST = VERSIONS[-1]
IMAGES = [
    (framework, version)
    for framework in images.frameworks()
    if framework.startswith("djl-")
    for version in images.versions(framework)
]
HANDLERS = [(*image, handler) for image in IMAGES for handler in lmi_version(*image).handlers]


def option(
    framework: str, version: str, handler: str, name: str, rolling_batch: str | None = None
) -> OptionFacts:
    return lmi_version(framework, version).options_for(handler, rolling_batch)[name]


def names(framework: str, version: str, handler: str, rolling_batch: str | None = None) -> set[str]:
    return set(lmi_version(framework, version).options_for(handler, rolling_batch))
