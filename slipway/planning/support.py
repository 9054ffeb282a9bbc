"""The settings that Slipway plans and cannot publish yet."""

from collections.abc import Iterator

from slipway.errors import FieldPath
from slipway.planning.situation import Situation


def unpublishable(situation: Situation) -> Iterator[tuple[FieldPath, str]]:
    """Yields every part of a config whose files cannot be published yet: field and what it is.

    Such a config can be planned, synthesised and reviewed, and not deployed.
    """
    for (section, name), what in situation.unpublishable.items():
        if getattr(getattr(situation.config, section), name) is not None:
            yield (section, name), what
