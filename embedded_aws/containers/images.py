"""The image in the engine that an address in ECR means.

`make images` builds every image under a name of its own, with the fingerprint of its sources as a
label. The tag of an image in ECR names its base and the same fingerprint. An endpoint therefore
never runs in an image of other sources than the sources that its template names.
"""

from typing import Final

from slipway.embedded_aws.containers.engine import Engine, EngineError

SOURCES_LABEL: Final = "slipway.sources"
"""The label of a built image: the fingerprint of its sources."""

_REMEDY: Final = "Run `make images`, then deploy again."


def built_name(family: str, base_tag: str) -> str:
    """Returns the name of an image that `make images` builds, on a base as tags name it."""
    return f"slipway-tried/{family}:{base_tag}"


def find_image(engine: Engine, repository: str, tag: str) -> str:
    """Returns the name of the image that a deployment names, `slipway/FAMILY:BASE-FINGERPRINT`.

    Raises EngineError if the engine lacks the image, or has an image of other sources.
    """
    base_tag, _, fingerprint = tag.rpartition("-")
    name = built_name(repository.rpartition("/")[2], base_tag)
    found = engine.label(name, SOURCES_LABEL)
    if found is None:
        raise EngineError(f"The engine ({engine.name}) has no image {name}. {_REMEDY}")
    if found != fingerprint:
        raise EngineError(
            f"The image {name} was built from the sources {found}. The deployment names the "
            f"sources {fingerprint}. {_REMEDY}"
        )
    return name
