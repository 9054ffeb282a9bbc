"""AWS's images, on which Slipway's LMI images are built, and their registries."""

from collections.abc import Iterable, Iterator

from slipway.config.environments import Environment
from slipway.facts.images import ImageFacts, UnknownImageError, frameworks, image, versions
from slipway.planning.families.lmi.handlers import our_handler
from slipway.planning.plan import ImageBase

_REPOSITORY = "djl-inference"
_IMAGES_OF_LMI = "djl-"


def image_bases(environment: Environment, wanted: Iterable[tuple[str, str]]) -> Iterator[ImageBase]:
    """Yields each existing base that Slipway's handlers support.

    There are eleven bases of gigabytes each, and most are never needed: only the bases that the
    project's configs name are built.

    Args:
        environment: gives the region.
        wanted: framework and version of the bases that configs name.
    """
    for framework, version in wanted:
        try:
            base = image(framework, version, environment.region)
        except UnknownImageError:
            continue  # a rule refuses every config that needs this base, or one of those below
        found = image_base(base)
        if found is not None and our_handler(framework, version) is not None:
            yield found


def image_base(base: ImageFacts) -> ImageBase | None:
    """Returns AWS's image as a base; None where it is not published in the region."""
    if base.uri is None:
        return None
    return ImageBase(base.tag, base.uri, base.digest, compiles=False)


def compiler_images(region: str) -> Iterator[tuple[str, str]]:
    """Yields registry and repository of AWS's images, which partition weights, too.

    Args:
        region: nothing is yielded where no source names a registry.
    """
    accounts: set[str] = set()
    for framework in frameworks():
        if not framework.startswith(_IMAGES_OF_LMI):
            continue
        for version in versions(framework):
            try:
                account = image(framework, version, region).account
            except UnknownImageError:
                continue
            if account is not None:
                accounts.add(account)
    for account in sorted(accounts):
        yield account, _REPOSITORY
